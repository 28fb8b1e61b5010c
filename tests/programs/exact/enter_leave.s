# build: -nostdlib -static -no-pie
# Frames with ENTER at nesting levels 0 to 4 and LEAVE, returns that clean up, 16-bit pushes.
    .globl _start
_start:
    mov %rsp, %rbp
    mov $30, %r12d
1:  push %r12
    push $3
    call outer
    dec %r12d
    jnz 1b
    mov %eax, %edi
    and $127, %edi
    mov $60, %eax
    syscall
outer:
    enter $32, $0
    mov 16(%rbp), %rax
    mov %rax, -8(%rbp)
    enter $16, $1
    enter $24, $2
    enter $8, $4
    pushw $0x1234
    popw %cx
    leave
    leave
    leave
    leave
    ret $16
