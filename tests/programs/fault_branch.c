// build: -O1
// build: -O1 -static
// Branches to where there is nothing: returns, jumps and calls by register and by memory. To what
// is no address the branch itself faults and has moved nothing; on some processors a call has
// written its return address by then. Anywhere else the fault comes at the target. What is an
// address depends on the levels of paging.
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

struct seen { long rip, rsp, slot, code, address, trap, error; };
static struct seen seen;
static sigjmp_buf back;
long where, stack, operand;
void by_return(long target), by_long_return(long target), by_jump(long target), by_call(long target);
void by_memory_jump(long target), by_memory_call(long target), by_relative_call(long target);

#define TRY(name, before, branch)                                                               \
    __asm__(".text\n" #name ":\n" before                                                        \
            "\tlea 1f(%rip), %rax\n\tmov %rax, where(%rip)\n\tmov %rsp, stack(%rip)\n"          \
            "\tmov %rdi, operand(%rip)\n1:\t" branch "\n\tud2\n")
#define EMPTY "\tmovq $0x5a5a5a, -8(%rsp)\n"
TRY(by_return, "\tpush %rdi\n" EMPTY, "ret");
TRY(by_long_return, "\tpush %rdi\n" EMPTY, "ret $40");
TRY(by_jump, EMPTY, "jmp *%rdi");
TRY(by_call, EMPTY, "call *%rdi");
TRY(by_memory_jump, EMPTY "\tlea operand(%rip), %rcx\n", "jmp *(%rcx)");
TRY(by_memory_call, EMPTY "\tlea operand(%rip), %rdx\n", "call *(%rdx)");
TRY(by_relative_call, EMPTY, "call *operand(%rip)");

static void handler(int signal, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    CHECK(signal == SIGSEGV);
    seen = (struct seen){registers[REG_RIP], registers[REG_RSP], ((long *)stack)[-1], info->si_code,
                         (long)info->si_addr, registers[REG_TRAPNO], registers[REG_ERR]};
    siglongjmp(back, 1);
}

static void attempt(const char *name, void (*branch)(long), long target)
{
    if (!sigsetjmp(back, 1)) branch(target);
    printf("%s to %lx: at the %s, stack %+ld, slot %s, code %ld address %lx trap %ld error %lx\n", name, target,
           seen.rip == where ? "branch" : seen.rip == target ? "target" : "wrong place", seen.rsp - stack,
           seen.slot == 0x5a5a5a ? "untouched" : "pushed", seen.code, seen.address, seen.trap, seen.error);
}

int main(void)
{
    static char other[65536];
    MUST(sigaltstack(&(stack_t){.ss_sp = other, .ss_size = sizeof other}, NULL));
    MUST(sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK}, NULL));
    static const long targets[] = {
        0x4141414141414141, 0x0000800000000000, 0x00007ffffffff010, 0x00fffffffffff010, 0x00ff000000000010, 0x0001000000000000, 0x0100000000000010, 0x7fffffffffffffff,
        (long)0x8000000000000000, (long)0xdeadbeefdeadbeef, (long)0xffff7fffffffffff, (long)0xff00000000000010, (long)0xfeffffffffffffff,
        (long)0xffff800000000000, (long)0xffffffff81000000, -16, 0, 0x10, 0x00007fff00000010,
    };
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < sizeof targets / sizeof *targets; i++) {
            attempt("return", by_return, targets[i]);
            attempt("return and pop", by_long_return, targets[i]);
            attempt("jump", by_jump, targets[i]);
            attempt("call", by_call, targets[i]);
            attempt("jump by memory", by_memory_jump, targets[i]);
            attempt("call by memory", by_memory_call, targets[i]);
            attempt("call by relative memory", by_relative_call, targets[i]);
        }
    return ok();
}
