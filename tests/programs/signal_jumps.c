// build: -O1
// build: -O1 -static
// Leaving handlers by siglongjmp, with and without the mask; a handler that changes rip and rax and
// returns; one that changes the mask of the interrupted context; getcontext/setcontext in a handler.
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
static sigjmp_buf back;
static void jump(int s) { siglongjmp(back, s); }
static void edit(int s, siginfo_t *si, void *uc)
{
    (void)si;
    ucontext_t *context = uc;
    greg_t *g = context->uc_mcontext.gregs;
    CHECK(s == SIGILL);
    g[REG_RIP] += 2;                     /* over the ud2 */
    g[REG_RAX] = 0x1234567890;
    g[REG_EFL] |= 0x41;                  /* carry, zero */
    sigaddset(&context->uc_sigmask, SIGUSR2);
    ((uint32_t *)context->uc_mcontext.fpregs->_xmm)[0] = 0x40490fdb;
}
static int blocked(int s)
{
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, s);
}
static ucontext_t resume_at;
static void restart(int s) { (void)s; setcontext(&resume_at); }
int main(void)
{
    struct sigaction act = {.sa_handler = jump};
    sigaction(SIGSEGV, &act, NULL);
    sigaction(SIGUSR1, &act, NULL);
    volatile int rounds = 0;
    if (sigsetjmp(back, 1) < SIGSEGV || rounds < 1000)
        if (rounds++ < 1000) *(volatile int *)8 = 1;
    CHECK(rounds >= 1000 && !blocked(SIGSEGV));
    if (sigsetjmp(back, 0) == 0) raise(SIGUSR1);
    printf("without the mask: %s\n", blocked(SIGUSR1) ? "still blocked" : "unblocked");

    struct sigaction editing = {.sa_sigaction = edit, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &editing, NULL);
    uint64_t rax = 0;
    uint8_t carry = 0, zero = 0;
    float pi = 0;
    __asm__ volatile("xorps %%xmm0, %%xmm0; or $1, %%eax; clc; ud2; setc %1; setz %2; movss %%xmm0, %3"
                     : "+a"(rax), "=m"(carry), "=m"(zero), "=m"(pi)::"xmm0", "cc");
    CHECK(rax == 0x1234567890 && carry && zero && blocked(SIGUSR2));
    printf("edited %.6f\n", pi);

    act.sa_handler = restart;
    sigaction(SIGHUP, &act, NULL);
    volatile int turns = 0;
    getcontext(&resume_at);
    if (turns++ < 5) raise(SIGHUP);
    printf("turns %d\n", turns);
    return ok();
}
