# build: -nostdlib -static -no-pie
# FS-relative accesses with a base of the program's own, changed on the way; 32-bit addresses.
    .globl _start
_start:
    mov $10, %r12d
    xor %r13d, %r13d
1:  mov $158, %eax
    mov $0x1002, %edi
    lea area(%rip), %rsi
    lea (%rsi,%r12,8), %rsi
    syscall
    mov %r12, %fs:0
    mov %fs:0, %rax
    mov $-8, %rbx
    mov %fs:(%rbx), %rcx
    incq %fs:16(%rbx)
    add %eax, %r13d
    lea area(%rip), %rdx
    movabs $0xabc00000000, %rcx
    add %rcx, %rdx
    addr32 mov 8(%edx), %r8
    addr32 addq $1, %fs:8
    dec %r12d
    jnz 1b
    mov %r13d, %edi
    mov $60, %eax
    syscall
    .data
    .balign 8
area:
    .skip 256
