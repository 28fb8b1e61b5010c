# build: -nostdlib -static -no-pie
# Nested counted loops with branches at odd alignments, LOOP and JRCXZ, and a loop of one
# instruction that branches to itself.
    .globl _start
_start:
    mov $20, %ebx
1:  mov $10, %ecx
2:  dec %ecx
    jnz 2b
    mov $5, %ecx
3:  loop 3b
    jrcxz 4f
    ud2
    .byte 0x90
4:  dec %ebx
    jne 1b
    mov $3, %ecx
5:  cmp $2, %ecx
    loopne 5b
    mov $60, %eax
    xor %edi, %edi
    syscall
