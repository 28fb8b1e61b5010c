// build: -O1
// Processes that trace their children, which do not execute another program: a stop shows the child's own
// registers, each signal stops it once, and what the tracer takes away or changes holds. gdb tries this when it starts.
#include "check.h"
#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#define MAGIC 0x1122334455667788ul

extern char at_trap[], at_write[], behind_write[], loop_start[], loop_end[];

static volatile sig_atomic_t handled;
static void handler(int signal) { handled = signal; }

static void __attribute__((noinline)) trap(void)
{
    __asm__ volatile("mov %0, %%r12\nint3\nat_trap: nop" : : "r"(MAGIC) : "r12");
}

static void __attribute__((noinline)) bad_write(void)
{
    __asm__ volatile("mov %0, %%r13\nxor %%eax, %%eax\nat_write: movl $1, (%%rax)\nbehind_write: nop"
                     : : "r"(MAGIC) : "r13", "rax", "memory");
}

static void __attribute__((noinline)) spin(void)
{
    __asm__ volatile("mov %0, %%r14\nloop_start: inc %%rcx\ncmp $-1, %%r14\nnop\njne loop_start\nloop_end: nop"
                     : : "r"(MAGIC) : "r14", "rcx");
}

static void __attribute__((noinline)) nowhere(void *page)
{
    __asm__ volatile("mov %0, %%rbx\njmp *%1" : : "r"(MAGIC), "r"(page) : "rbx");
}

static struct user_regs_struct regs;

static void look(pid_t child) { CHECK(ptrace(PTRACE_GETREGS, child, 0, &regs) == 0); }

/* Lets the child go on with a signal; it must be stopped by another. */
static void stops(pid_t child, int with, int by)
{
    int status;
    CHECK(ptrace(PTRACE_CONT, child, 0, (long)with) == 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == by);
}

static void ends(pid_t child, int with)
{
    int status;
    CHECK(ptrace(PTRACE_CONT, child, 0, (long)with) == 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == with);
}

static void faults(void *page)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
        raise(SIGSTOP);
        trap();
        bad_write();
        signal(SIGUSR1, handler);
        raise(SIGUSR1);
        CHECK(handled == SIGUSR1);
        nowhere(page);
        _exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    stops(child, 0, SIGTRAP);
    look(child);
    CHECK(regs.rip == (unsigned long)at_trap && regs.r12 == MAGIC);
    CHECK(ptrace(PTRACE_PEEKUSER, child, offsetof(struct user_regs_struct, rip), 0) == (long)at_trap);

    stops(child, 0, SIGSEGV);
    struct iovec set = {&regs, sizeof regs};
    CHECK(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &set) == 0);
    CHECK(regs.rip == (unsigned long)at_write && regs.r13 == MAGIC && regs.rax == 0);
    siginfo_t info;
    CHECK(ptrace(PTRACE_GETSIGINFO, child, 0, &info) == 0);
    CHECK(info.si_signo == SIGSEGV && info.si_code == SEGV_MAPERR && info.si_addr == NULL);
    regs.rip = (unsigned long)behind_write;
    CHECK(ptrace(PTRACE_SETREGS, child, 0, &regs) == 0);

    stops(child, 0, SIGUSR1);
    stops(child, SIGUSR1, SIGSEGV);
    look(child);
    CHECK(regs.rip == (unsigned long)page && regs.rbx == MAGIC);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

static int is_in_loop(void) { return regs.rip >= (unsigned long)loop_start && regs.rip < (unsigned long)loop_end; }

static void attaches(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        spin();
    }
    CHECK(ptrace(PTRACE_ATTACH, child, 0, 0) == 0);
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    for (look(child); !is_in_loop(); look(child)) {
        CHECK(ptrace(PTRACE_CONT, child, 0, 0L) == 0);
        usleep(10000);
        CHECK(kill(child, SIGSTOP) == 0);
        CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    }
    CHECK(regs.r14 == MAGIC);
    CHECK(kill(child, SIGTERM) == 0);
    stops(child, 0, SIGTERM);
    look(child);
    CHECK(is_in_loop() && regs.r14 == MAGIC);
    ends(child, SIGTERM);
}

int main(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    faults(page);
    attaches();
    puts("ok");
    return 0;
}
