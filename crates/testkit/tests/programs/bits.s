# Bit strings: the offset in a register reaches outside the operand, also before it.
#= instructions 12 loads 5 stores 3 syscalls 1
#> R d+108 8 0000000000000004
#> R d+f8 8 0000000000000000
#> W d+f8 8 8000000000000000
#> R d+104 4 00000000
#> W d+104 4 00000001
#> R d+fe 2 8000
#> W d+fe 2 0000
#> R d+100 8 0000000100000000
    .globl _start
_start:
    lea d + 0x100(%rip), %rbx
    mov $66, %eax
    bt %rax, (%rbx)
    mov $-1, %rax
    bts %rax, (%rbx)
    mov $32, %ecx
    btc %ecx, (%rbx)
    btr %ax, (%rbx)
    btq $3, (%rbx)
    mov $60, %eax
    xor %edi, %edi
    syscall
    .data
d:  .org d + 0x108
    .quad 4
    .org d + 0x2000
