# build: -nostdlib -static -no-pie
# Indirect jumps and calls through registers, memory, a table, the stack pointer and a return
# address pushed by hand; a call to the next instruction.
    .globl _start
_start:
    xor %r12d, %r12d
    mov $30, %r13d
1:  mov %r13d, %eax
    and $3, %eax
    lea table(%rip), %rbx
    jmp *(%rbx,%rax,8)
zero:
    call *target(%rip)
    jmp 9f
one:
    lea add_two(%rip), %rdx
    call *%rdx
    jmp 9f
two:
    lea 9f(%rip), %rdx
    push %rdx
    jmp add_two                     # returns to 9
three:
    lea add_two(%rip), %rdx
    push %rdx
    call *(%rsp)
    pop %rdx
    push $0
    lea 9f(%rip), %rcx
    mov %rcx, (%rsp)
    ret                             # a jump in disguise
9:  call 10f
10: pop %rdx
    dec %r13d
    jnz 1b
    mov %r12d, %edi
    mov $60, %eax
    syscall
add_two:
    add $2, %r12d
    ret
    .data
table:
    .quad zero, one, two, three
target:
    .quad add_two
