// build: -O1
// build: -O2 -static
// A garbage collector's write barrier: SIGSEGV handler that mprotects the page and retries, by plain
// stores, vector stores, pushes, atomic operations and string instructions.
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
enum { PAGES = 64, PAGE = 4096 };
static char *area;
static int faults;
static void handler(int s, siginfo_t *si, void *uc)
{
    (void)s, (void)uc;
    char *at = si->si_addr;
    CHECK(at >= area && at < area + PAGES * PAGE && si->si_code == SEGV_ACCERR);
    MUST(mprotect((void *)((uintptr_t)at & -PAGE), PAGE, PROT_READ | PROT_WRITE));
    faults++;
}
static void protect(void) { faults = 0; MUST(mprotect(area, PAGES * PAGE, PROT_READ)); }
int main(void)
{
    struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};  /* for the pushes */
    MUST(sigaltstack(&stack, NULL));
    sigaction(SIGSEGV, &act, NULL);
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    protect();
    for (int i = 0; i < PAGES; i++) area[i * PAGE + i] += (char)(i + 1);
    printf("stores %d\n", faults);
    protect();
    memset(area, 7, PAGES * PAGE);
    printf("memset %d\n", faults);
    protect();
    memmove(area + 100, area, PAGES * PAGE - 100);
    printf("memmove %d\n", faults);
    protect();
    void *di = area;
    unsigned long count = PAGES * PAGE / 8;
    __asm__ volatile("rep stosq" : "+D"(di), "+c"(count) : "a"(0x0101010101010101) : "memory");
    CHECK(count == 0 && di == area + PAGES * PAGE);
    printf("rep stosq %d\n", faults);
    protect();
    for (int i = 0; i < PAGES; i++) __atomic_fetch_add((long *)(area + i * PAGE), 5, __ATOMIC_SEQ_CST);
    printf("atomics %d\n", faults);
    protect();
    __asm__ volatile("mov %%rsp, %%r12; lea (%0), %%rsp; push $1; push %%rax; pushf; call 1f; 1: pop %%rax\n\t"
                     "mov %%r12, %%rsp" ::"r"(area + 2 * PAGE + 16) : "r12", "rax", "memory", "cc");
    printf("pushes %d\n", faults);
    long sum = 0;
    for (int i = 0; i < PAGES * PAGE; i++) sum = sum * 31 + area[i];
    CHECK(sum != 0);
    return ok();
}
