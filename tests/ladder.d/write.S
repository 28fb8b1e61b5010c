// Writes a line and exits, without a libc.
    .globl _start
_start:
    mov $1, %eax
    mov $1, %edi
    lea text(%rip), %rsi
    mov $6, %edx
    syscall
    mov $231, %eax
    xor %edi, %edi
    syscall
text: .ascii "bare!\n"
