// build: -O1
// Calls to what is no address, with a stack that takes no return address: those fault at the stack, also on
// processors that leave nothing pushed when they fault at the branch.
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

static sigjmp_buf back;
static const char *name;
static long stack;

static void handler(int signal, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const char *where = !info->si_addr ? "none" : (long)info->si_addr == stack - 8 ? "the slot" : "elsewhere";
    printf("%s: signal %d code %d address %s trap %lld error %llx stack %+lld\n", name, signal, info->si_code,
           where, registers[REG_TRAPNO], registers[REG_ERR], registers[REG_RSP] - stack);
    siglongjmp(back, 1);
}

static void attempt(const char *what, long target, long to)
{
    name = what;
    stack = to;
    if (!sigsetjmp(back, 1))
        __asm__ volatile("mov %0, %%rax\n\tmov %1, %%rsp\n\tcall *%%rax" : : "r"(target), "r"(to) : "rax", "memory");
}

int main(void)
{
    static char other[65536], usable[65536];
    MUST(sigaltstack(&(stack_t){.ss_sp = other, .ss_size = sizeof other}, NULL));
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    MUST(sigaction(SIGSEGV, &action, NULL));
    MUST(sigaction(SIGBUS, &action, NULL));
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    *page = 1;
    static const long targets[] = {0x4141414141414141, 0x0000900000000000, 0x0000800000000000, (long)0xdeadbeefdeadbeef};
    for (unsigned i = 0; i < sizeof targets / sizeof *targets; i++) {
        attempt("a stack that can be written", targets[i], (long)usable + sizeof usable);
        attempt("nothing mapped", targets[i], 0x10000000);
        attempt("no address", targets[i], 0x5555555555555550);
        attempt("the kernel's", targets[i], (long)0xffffffff81000000);
        attempt("the end of user space", targets[i], 0x0000800000000000);
        attempt("the first address", targets[i], 0);
        MUST(mprotect(page, 4096, PROT_READ));
        attempt("read-only", targets[i], (long)page + 4096);
        MUST(mprotect(page, 4096, PROT_NONE));
        attempt("no access", targets[i], (long)page + 4096);
    }
    return ok();
}
