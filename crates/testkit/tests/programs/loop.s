# A counted loop: one conditional branch per round, taken in all but the last.
#= instructions 25 branches 10 taken 9 ticks 9 loads 0 stores 0 syscalls 1 calls 0 returns 0
    .globl _start
_start:
    mov $10, %ecx           # 1
1:  dec %ecx                # 10
    jnz 1b                  # 10
    mov $60, %eax           # exit(0): 4 more
    xor %edi, %edi
    nop
    syscall
