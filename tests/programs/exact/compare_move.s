# build: -nostdlib -static -no-pie
# XLAT, BSWAP, high byte registers, CMOV and SETcc to memory, MOVBE, shifts by CL, double shifts,
# multiplication and division of all widths, BMI and ADX.
    .globl _start
_start:
    lea table(%rip), %rbx
    mov $30, %r12d
    xor %r13d, %r13d
1:  mov %r12d, %eax
    xlatb
    mov %al, %ah
    xchg %ah, %cl
    bswap %rax
    rol $5, %ax
    cmp $9, %r12d
    cmovbq 8(%rbx), %rax
    setae 64(%rbx)
    movbe 8(%rbx), %rdx
    mov %r12d, %ecx
    shld %cl, %rax, %rdx
    sar %cl, %rdx
    mul %rdx
    mov $7, %ecx
    xor %edx, %edx
    div %ecx
    imul $3, 16(%rbx), %esi
    andn %rsi, %rax, %rdi
    pdep %rsi, %rdi, %r8
    pext %rsi, %r8, %r9
    adcx %r8, %r9
    adox 24(%rbx), %r9
    mulx %r9, %r10, %r11
    crc32q %r10, %r13
    dec %r12d
    jnz 1b
    mov %r13d, %edi
    and $127, %edi
    mov $60, %eax
    syscall
    .data
    .balign 8
table:
    .byte 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7
    .skip 64
