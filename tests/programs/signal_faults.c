// build: -O1 -lm
// si_code, si_addr, trap number and pc of every synchronous fault; each handler jumps over the
// faulting instruction by changing rip in the ucontext.
#include "check.h"
#include <fcntl.h>
#include <fenv.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
static int number, code, trap;
static void *address, *expected_pc;
static long error_bits, cr2;
static volatile int at_pc;
static void handler(int n, siginfo_t *si, void *uc)
{
    greg_t *g = ((ucontext_t *)uc)->uc_mcontext.gregs;
    number = n, code = si->si_code, address = si->si_addr;
    trap = g[REG_TRAPNO], error_bits = g[REG_ERR], cr2 = g[REG_CR2];
    at_pc = g[REG_RIP] == (greg_t)expected_pc;
    g[REG_RIP] = g[REG_R15];
}
/* Runs one instruction that faults; the handler resumes at label 2. */
#define FAULT(text, ...)                                                                          \
    __asm__ volatile("lea 1f(%%rip), %%r15; mov %%r15, %0; lea 2f(%%rip), %%r15\n1: " text "\n2:\n" \
                     : "=m"(expected_pc) : __VA_ARGS__                                            \
                     : "r14", "r15", "xmm0", "memory", "cc")
#define SHOW(name) printf("%-22s signal %d code %d trap %d error %ld pc %d\n", name, number, code, trap, error_bits, at_pc)
int main(void)
{
    struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (int i = 0; i < 5; i++) sigaction(faults[i], &act, NULL);
    char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(munmap(page + 4096, 4096));

    FAULT("mov 0x10, %%r15", "i"(0));
    CHECK(address == (void *)0x10);
    SHOW("read near null");
    FAULT("movb $1, 5(%1)", "r"(page));
    CHECK(address == page + 5 && cr2 == (long)page + 5);
    SHOW("write to read-only");
    FAULT("mov 4092(%1), %%r14", "r"(page));
    CHECK(address == page + 4096);
    SHOW("read across the end");
    FAULT("movups 4090(%1), %%xmm0", "r"(page));
    CHECK(address == page + 4096);
    SHOW("wide read across");
    FAULT("mov (%1), %%r14", "r"(0x8000000000000000));
    CHECK(address == NULL);
    SHOW("non-canonical");
    FAULT("movaps 1(%1), %%xmm0", "r"(page));
    SHOW("unaligned movaps");
    FAULT("ud2", "i"(0));
    SHOW("ud2");
    FAULT("hlt", "i"(0));
    SHOW("hlt");
    FAULT("cli", "i"(0));
    SHOW("cli");
    FAULT("div %%ebx", "a"(1), "d"(0), "b"(0));
    SHOW("divide by zero");
    CHECK(address != NULL);
    FAULT("idiv %%ebx", "a"(0x80000000), "d"(-1), "b"(-1));
    SHOW("divide overflow");
    FAULT("int $0x2d", "i"(0));
    SHOW("int 0x2d");
    FAULT("mov %%cr0, %%r15", "i"(0));
    SHOW("mov from cr0");
    FAULT("in $0x80, %%al", "a"(0));
    SHOW("in");

    int fd = open("short", O_RDWR | O_CREAT, 0600); // unlinked at once: nothing is left where the program runs
    CHECK(unlink("short") == 0);
    CHECK(write(fd, "x", 1) == 1);
    char *file = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    FAULT("movb $1, 4096(%1)", "r"(file));
    CHECK(address == file + 4096);
    SHOW("beyond the file");

    feenableexcept(FE_DIVBYZERO | FE_INVALID);
    volatile double zero = 0, one = 1;
    double a = one, b = zero;
    __asm__ volatile("lea 1f(%%rip), %%r15; mov %%r15, %0; lea 2f(%%rip), %%r15\n1: divsd %2, %1\n2:\n"
                     : "=m"(expected_pc), "+x"(a) : "x"(b) : "r15", "memory");
    SHOW("sse divide by zero");
    fedisableexcept(FE_ALL_EXCEPT);
    return ok();
}
