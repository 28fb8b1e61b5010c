# Stops itself, runs on in its own "runner" and then leaves it: only what is outside is reported.
    .globl _start
_start:
    mov $39, %eax
    syscall
    mov %eax, %edi
    mov $19, %esi
    mov $62, %eax
    syscall                 # kill(getpid(), SIGSTOP)
    mov $5, %ecx
1:  loop 1b
    jmp outside
    .section .outside, "ax"
outside:
    nop
    mov $60, %eax
    xor %edi, %edi
    syscall
