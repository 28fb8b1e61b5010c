# Addressing: FS base, 32-bit addresses that wrap, RIP-relative, index and scale, absolute.
#= instructions 15 loads 7 stores 0 syscalls 2
#> R d+40 8 0000000000000009
#> R d+48 4 0000000b
#> R d+40 8 0000000000000009
#> R d+48 8 000000000000000b
#> R d+40 8 0000000000000009
#> R d+40 8 0000000000000009
#> R d+48 1 0b
    .globl _start
_start:
    mov $158, %eax
    mov $0x1002, %edi
    lea d + 0x30(%rip), %rsi
    syscall                         # FS base is d + 0x30
    mov %fs:0x10, %rax
    mov $0x18, %ebx
    mov %fs:(%rbx), %ecx
    mov d + 0x40(%rip), %rax
    mov d + 0x30(,%rbx,1), %rax
    mov $0xffffffffffffffff, %rbx
    addr32 mov 0x600041(%ebx), %rax # d is at 0x600000
    mov 0x600048(,%rbx,8), %rax
    movzbl 0x600048, %eax
    mov $60, %eax
    syscall
    .data
d:  .org d + 0x40
    .quad 9, 11
    .org d + 0x2000
