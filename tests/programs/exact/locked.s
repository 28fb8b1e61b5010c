# build: -nostdlib -static -no-pie
# Every LOCK-prefixed kind of instruction, XCHG, XADD, CMPXCHG that fails and succeeds,
# CMPXCHG8B and CMPXCHG16B.
    .globl _start
_start:
    lea data(%rip), %rbx
    mov $25, %r12d
1:  lock addq $3, (%rbx)
    lock incl 8(%rbx)
    lock notq 16(%rbx)
    lock xaddq %r12, 24(%rbx)
    xchgq %r12, 24(%rbx)
    mov (%rbx), %rax
    mov $7, %ecx
    lock cmpxchgq %rcx, (%rbx)      # succeeds
    lock cmpxchgq %rcx, 8(%rbx)     # fails
    mov 32(%rbx), %rax
    mov 40(%rbx), %rdx
    mov %rax, %rcx
    lock cmpxchg16b 32(%rbx)
    cmpxchg8b 48(%rbx)
    mov 24(%rbx), %r12
    mov %r14, %r12
    inc %r14d
    cmp $25, %r14d
    jb 1b
    mov (%rbx), %edi
    and $127, %edi
    mov $60, %eax
    syscall
    .data
    .balign 16
data:
    .skip 128
