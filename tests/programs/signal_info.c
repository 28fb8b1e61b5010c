// build: -O1
// build: -O2 -static
// Handlers with siginfo and ucontext: who sent it, and the registers at the interrupted place. The
// registers are set to known values right around a synchronous trap and a kill of oneself.
#include "check.h"
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
static siginfo_t info;
static ucontext_t context;
static volatile int seen;
static void handler(int number, siginfo_t *si, void *uc)
{
    info = *si;
    context = *(ucontext_t *)uc;
    seen = number;
}
extern char after_trap[], after_kill[];
int main(void)
{
    struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    for (int s = 1; s < 32; s++) sigaction(s, &act, NULL);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGWINCH);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    __asm__ volatile("mov $0x1111111111111111, %%rbx; mov $0x2222222222222222, %%r12\n\t"
                     "mov $0x3333333333333333, %%r13; mov $0x4444444444444444, %%r15\n\t"
                     "mov $0x5555555555555555, %%r8; stc; int3\n"
                     ".globl after_trap\nafter_trap:\n"
                     ::: "rbx", "r12", "r13", "r15", "r8", "cc", "memory");
    greg_t *g = context.uc_mcontext.gregs;
    CHECK(seen == SIGTRAP && info.si_code == SI_KERNEL);
    CHECK(g[REG_RBX] == 0x1111111111111111 && g[REG_R12] == 0x2222222222222222);
    CHECK(g[REG_R13] == 0x3333333333333333 && g[REG_R15] == 0x4444444444444444);
    CHECK(g[REG_R8] == 0x5555555555555555 && (g[REG_EFL] & 1));
    CHECK(g[REG_RIP] == (greg_t)after_trap && g[REG_TRAPNO] == 3);
    CHECK(sigismember(&context.uc_sigmask, SIGWINCH) == 1 && sigismember(&context.uc_sigmask, SIGTRAP) == 0);
    long pid = getpid();
    __asm__ volatile("mov $0x7777777777777777, %%r14; mov %0, %%rdi; mov %1, %%rsi; mov %2, %%eax\n\t"
                     "std; cld; syscall\n.globl after_kill\nafter_kill:\n"
                     :: "r"(pid), "i"(SIGUSR1), "i"(SYS_kill)
                     : "r14", "rdi", "rsi", "rax", "rcx", "r11", "cc", "memory");
    CHECK(seen == SIGUSR1 && info.si_code == SI_USER && info.si_pid == pid && info.si_uid == getuid());
    CHECK(g[REG_R14] == 0x7777777777777777 && g[REG_RIP] == (greg_t)after_kill && g[REG_RAX] == 0);
    CHECK(g[REG_RCX] == (greg_t)after_kill);            // what `syscall` leaves behind
    CHECK(context.uc_mcontext.fpregs != NULL && (g[REG_CSGSFS] & 0xffff) == 0x33);
    raise(SIGUSR2);
    CHECK(seen == SIGUSR2 && info.si_code == SI_TKILL && info.si_pid == pid);
    union sigval value = {.sival_ptr = (void *)0x123456789abcdef0};
    MUST(sigqueue(pid, SIGHUP, value));
    CHECK(seen == SIGHUP && info.si_code == SI_QUEUE && info.si_value.sival_ptr == value.sival_ptr);
    return ok();
}
