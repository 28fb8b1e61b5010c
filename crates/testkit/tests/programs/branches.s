# Conditional branches of every kind, taken and not, forwards and back, also to the very next
# instruction and to itself; indirect jumps and calls.
#= instructions 33 branches 11 taken 7 calls 1 returns 1 ticks 8 loads 1 stores 1 syscalls 1
#> W d+ff8 8
#> R d+ff8 8
    .globl _start
_start:
    lea d + 0x1000(%rip), %rsp      # 1
    xor %ecx, %ecx
    jrcxz 1f                        # taken, forwards
    ud2
1:  inc %ecx
    jrcxz 1b                        # 5: not taken
    cmp %ecx, %ecx
    je 2f                           # taken, to the next instruction
2:  jne 3f                          # 8: not taken, to the next instruction
3:  mov $3, %ecx
4:  loop 4b                         # 10, 11, 12: taken twice, back to itself (2 ticks)
    lea 5f(%rip), %rax
    jmp *%rax                       # 14: indirect, forwards (tick)
    ud2
5:  xor %edx, %edx
    jmp 7f                          # 16: direct, forwards (no tick)
6:  jmp 8f                          # 18
7:  jmp 6b                          # 17: direct, back (tick)
8:  lea 9f(%rip), %rax
    call *%rax                      # 20 (tick)
    mov $2, %ebx                    # 22
    jmp 11f                         # 23
9:  ret                             # 21 (tick)
10: dec %ebx                        # 26, 30
    jz 12f                          # 27, 31: not taken, taken
11: test %ebx, %ebx                 # 24, 28
    jnz 10b                         # 25, 29: back, taken (2 ticks)
    ud2
12: mov $60, %eax
    syscall                         # 33
    .data
d:  .org d + 0x2000
