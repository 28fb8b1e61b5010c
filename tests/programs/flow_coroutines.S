// build: -O1
// Hand-made coroutines: the stack pointer is switched by mov and the switch returns with `ret` to
// another stack than it was called on, so no return matches its call.
    .text
switch_to:                      // rdi: where to keep our rsp, rsi: the rsp to go to
    push %rbx
    push %rbp
    push %r12
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r12
    pop %rbp
    pop %rbx
    ret
worker:                         // adds its number, forever, and yields
    add %rbx, total(%rip)
    lea here(%rip), %rdi
    mov (%rdi,%r12,8), %rax
    lea (%rdi,%r12,8), %rdi
    mov main_sp(%rip), %rsi
    call switch_to
    jmp worker
    .globl main
main:
    push %rbx
    push %rbp
    push %r12
    xor %ebx, %ebx
1:  mov %rbx, %rax              // stack i: top of its own 4 KiB
    inc %rax
    shl $12, %rax
    lea stacks(%rip), %rcx
    add %rcx, %rax
    sub $64, %rax
    mov %rbx, (%rax)            // r12: index
    movq $0, 8(%rax)            // rbp
    lea 1(%rbx), %rdx
    mov %rdx, 16(%rax)          // rbx: what it adds
    lea worker(%rip), %rdx
    mov %rdx, 24(%rax)
    lea here(%rip), %rdx
    mov %rax, (%rdx,%rbx,8)
    inc %ebx
    cmp $16, %ebx
    jne 1b
    mov $10000, %ebp
2:  xor %ebx, %ebx
3:  lea main_sp(%rip), %rdi
    lea here(%rip), %rsi
    mov (%rsi,%rbx,8), %rsi
    call switch_to
    inc %ebx
    cmp $16, %ebx
    jne 3b
    dec %ebp
    jnz 2b
    mov total(%rip), %rsi       // 10000 * (1 + ... + 16)
    lea format(%rip), %rdi
    xor %eax, %eax
    call printf@PLT
    xor %eax, %eax
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .section .rodata
format: .asciz "total %ld\n"
    .bss
    .balign 16
total: .skip 8
main_sp: .skip 8
here: .skip 16*8
stacks: .skip 16*4096
    .section .note.GNU-stack,"",@progbits
