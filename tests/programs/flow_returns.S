// build: -O1
// Return-address tricks: push + ret as a jump, call/pop to learn the pc, a retpoline, a callee that
// changes its return address, one that drops a frame, `ret imm16`, calls through memory and stack,
// and a chain of returns without any call (as a ROP chain).
    .text
    .globl main
main:
    push %rbx
    xor %ebx, %ebx
    mov $2000, %ebp
again:
    lea 1f(%rip), %rax          // push + ret
    push %rax
    ret
    ud2
1:  add $1, %rbx
    call 2f                     // call/pop
2:  pop %rax
    lea 2b(%rip), %rcx
    cmp %rcx, %rax
    jne bad
    add $2, %rbx
    lea target(%rip), %rax      // a retpoline
    call retpoline
    call skips                  // returns three bytes later
    ud2
    nop
    add $8, %rbx
    call outer                  // whose inner returns straight to us
    add $16, %rbx
    push $5
    push $6
    call pops                   // ret $16
    add %rax, %rbx
    lea pointer(%rip), %rax     // through memory, through the stack
    call *(%rax)
    push (%rax)
    call *(%rsp)
    pop %rax
    lea 3f(%rip), %rax          // a chain of returns
    push %rax
    lea gadget(%rip), %rax
    push %rax
    push %rax
    push %rax
    ret
3:  dec %ebp
    jnz again
    mov %rbx, %rsi
    lea format(%rip), %rdi
    xor %eax, %eax
    call printf@PLT
    xor %eax, %eax
    pop %rbx
    ret
bad:
    mov $1, %eax
    pop %rbx
    ret
retpoline:
    call 5f
4:  pause
    jmp 4b
5:  mov %rax, (%rsp)
    ret
target:
    add $4, %rbx
    ret
skips:
    addq $3, (%rsp)
    ret
outer:
    call inner
    ud2
inner:
    add $8, %rsp
    ret
pops:
    mov 8(%rsp), %rax
    add 16(%rsp), %rax
    ret $16
counted:
    add $32, %rbx
    ret
gadget:
    add $64, %rbx
    ret
    .section .rodata
format: .asciz "sum %ld\n"
    .data
pointer: .quad counted
    .section .note.GNU-stack,"",@progbits
