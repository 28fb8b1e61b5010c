# build: -nostdlib -static -no-pie
# REP MOVS/STOS/SCAS/CMPS/LODS of all widths, forwards, backwards, with a count of zero, ended by
# a comparison, with overlapping operands.
    .globl _start
_start:
    lea text(%rip), %rsi
    lea room(%rip), %rdi
    mov $37, %ecx
    rep movsb
    mov $9, %ecx
    mov $0x0102030405060708, %rax
    rep stosq
    lea room + 1(%rip), %rdi        # overlapping: smears one byte
    lea room(%rip), %rsi
    mov $30, %ecx
    rep movsb
    std
    lea room + 48(%rip), %rsi
    lea room + 80(%rip), %rdi
    mov $5, %ecx
    rep movsw
    mov $4, %ecx
    rep stosl
    cld
    lea text(%rip), %rdi
    xor %eax, %eax
    mov $-1, %rcx
    repne scasb                     # strlen
    not %rcx
    lea text(%rip), %rsi
    lea other(%rip), %rdi
    mov %rcx, %rdx
    repe cmpsb
    sub %rcx, %rdx
    xor %ecx, %ecx
    rep movsq
    repe scasl
    mov $3, %ecx
    lea text(%rip), %rsi
    rep lodsw
    lodsq
    mov %edx, %edi
    mov $60, %eax
    syscall
    .data
text:
    .asciz "the quick brown fox jumps over it all"
other:
    .asciz "the quick brown dog jumps over it all"
    .bss
room:
    .skip 256
