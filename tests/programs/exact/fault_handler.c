/* build: -O1 -static
 * A guard page touched on purpose: SIGSEGV on an alternate stack, the page made writable, the
 * store retried; then out of a handler with siglongjmp. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

static char *page;
static sigjmp_buf place;
static volatile int faults;

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    faults++;
    if ((char *)info->si_addr >= page && (char *)info->si_addr < page + 4096)
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
    else
        siglongjmp(place, 1);
}

int main(void) {
    static char room[16384];
    sigaltstack(&(stack_t){.ss_sp = room, .ss_size = sizeof room}, 0);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, 0);
    page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 100; i++) page[i] = i;
    if (sigsetjmp(place, 1) == 0) *(volatile int *)16 = 1;
    return faults * 10 + page[7];
}
