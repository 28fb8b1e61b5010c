# Code that changes itself: the same address holds a NOP, then a longer instruction.
#= instructions 22 branches 3 taken 2 ticks 1 loads 2 stores 1 syscalls 2
    .globl _start
_start:
    lea patched(%rip), %rdi
    and $-0x1000, %rdi
    mov $0x1000, %esi
    mov $7, %edx
    mov $10, %eax
    syscall                             # 6
    xor %ebx, %ebx
patched:
    nop                                 # becomes the REX.W of the load: one instruction
    movl d(%rip), %ecx
    inc %ebx
    cmp $2, %ebx
    je 1f
    movb $0x48, patched(%rip)
    jmp 2f
    ud2
2:  cmp $2, %ebx
    jne patched
1:  mov $60, %eax
    syscall
    .data
d:  .quad 1
    .org d + 0x2000
