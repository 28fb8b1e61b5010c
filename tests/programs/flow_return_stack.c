// build: -O1
// What a return leaves below the stack pointer, and returns through a stack that can only be read:
// an engine that uses the guest's stack for its own addresses must not show.
#include "check.h"
#include <stdint.h>
#include <sys/mman.h>

__asm__(
    ".text\n"
    "twice:\n"                      // branches, so that it is not simply translated in line
    "    test $1, %dil\n"
    "    jz 1f\n"
    "    lea (%rdi,%rdi), %rax\n"
    "    ret\n"
    "1:  mov %rdi, %rax\n"
    "    ret\n"
    ".globl word_below\n"           // is the word that a return popped what it was?
    "word_below:\n"
    "    call twice\n"
    "2:  mov -8(%rsp), %rax\n"
    "    lea 2b(%rip), %rcx\n"
    "    sub %rcx, %rax\n"
    "    ret\n"
    ".globl word_below_indirect\n"
    "word_below_indirect:\n"
    "    lea twice(%rip), %rax\n"
    "    call *%rax\n"
    "3:  mov -8(%rsp), %rax\n"
    "    lea 3b(%rip), %rcx\n"
    "    sub %rcx, %rax\n"
    "    ret\n"
    ".globl flags_kept\n"           // do flags survive a call and a return?
    "flags_kept:\n"
    "    mov $-1, %rdi\n"
    "    call sets_carry\n"
    "    setc %al\n"
    "    seto %ah\n"
    "    movzx %ax, %eax\n"
    "    ret\n"
    "sets_carry:\n"
    "    test %rdi, %rdi\n"
    "    jz 4f\n"
    "    add $1, %rdi\n"
    "4:  ret\n"
    ".globl return_from\n"          // returns through the stack at rdi
    "return_from:\n"
    "    mov %rsp, %rdx\n"
    "    lea 5f(%rip), %rax\n"
    "    cmp %rax, (%rdi)\n"
    "    je 6f\n"
    "    mov %rax, (%rdi)\n"
    "    xor %eax, %eax\n"
    "    ret\n"
    "6:  mov %rdi, %rsp\n"
    "    ret\n"
    "5:  mov %rsp, %rax\n"
    "    mov %rdx, %rsp\n"
    "    sub %rdi, %rax\n"
    "    ret\n");

long word_below(long odd);
long word_below_indirect(long odd);
long flags_kept(void);
long return_from(uint64_t *stack);

int main(void)
{
    for (long n = 0; n < 5000; n++) {
        CHECK(word_below(n) == 0);
        CHECK(word_below_indirect(n) == 0);
        CHECK(flags_kept() == 1);
    }
    uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    CHECK(return_from(page + 8) == 0);      // stores the address to return to
    CHECK(return_from(page + 8) == 8);
    CHECK(mprotect(page, 4096, PROT_READ) == 0);
    uint64_t before = page[8];
    for (int n = 0; n < 100; n++)
        CHECK(return_from(page + 8) == 8);
    CHECK(page[8] == before);
    return ok();
}
