// build: -O1
// reports
// Faults that no handler may catch: SIGSEGV while it is blocked, while it is ignored, inside its own
// handler, with no room for a frame, on a broken alternate stack, and a handler address that is unmapped.
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
static void handler(int s) { (void)s; *(volatile int *)8 = 1; }
static void harmless(int s) { (void)s; _exit(50); }
static void wild(void) { *(volatile int *)16 = 1; }
static void blocked(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    signal(SIGSEGV, harmless);
    wild();
}
static void ignored(void) { signal(SIGSEGV, SIG_IGN); wild(); }
static void twice(void) { signal(SIGSEGV, handler); wild(); }
static void no_room(void)
{
    signal(SIGSEGV, harmless);
    __asm__ volatile("xor %%esp, %%esp; movl $1, 16" ::: "memory");
}
static void broken_alternate(void)
{
    char *page = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_sp = page, .ss_size = 65536};
    MUST(sigaltstack(&stack, NULL));
    struct sigaction act = {.sa_handler = harmless, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &act, NULL);
    wild();
}
static void nowhere(void) { signal(SIGSEGV, (void (*)(int))0x12345000); wild(); }
static void jump_to_null(void) { ((void (*)(void))(uintptr_t)(getpid() < 0))(); }
static void jump_to_data(void) { static char data[16] = "\xc3"; ((void (*)(void))(void *)data)(); }
int main(void)
{
    void (*ways[])(void) = {blocked, ignored, twice, no_room, broken_alternate, nowhere, jump_to_null, jump_to_data};
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        pid_t pid = fork();
        if (!pid) {
            ways[i]();
            _exit(99);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        printf("%u: %s %d\n", i, WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        fflush(stdout);
    }
    return ok();
}
