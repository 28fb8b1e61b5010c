# String instructions: forwards, backwards, no repetition at all, ended by a comparison, not
# repeated; with 32-bit counters. A REP instruction is one instruction.
#= instructions 32 branches 0 loads 15 stores 9 syscalls 1
#> R d+0 1 61
#> W d+20 1 61
#> R d+1 1 62
#> W d+21 1 62
#> R d+2 1 63
#> W d+22 1 63
#> R d+18 8 0000000000000064
#> W d+38 8 0000000000000064
#> R d+10 8 6c6b6a6968676665
#> W d+30 8 6c6b6a6968676665
#> W d+40 4 7f7f7f7f
#> W d+44 4 7f7f7f7f
#> R d+0 1 61
#> R d+20 1 61
#> R d+1 1 62
#> R d+21 1 62
#> R d+2 1 63
#> R d+22 1 63
#> R d+3 1 78
#> R d+23 1 00
#> R d+44 2 7f7f
#> W d+50 1 7f
#> W d+51 1 7f
#> R d+18 1 64
    .globl _start
_start:
    lea d(%rip), %rbx
    mov %rbx, %rsi
    lea 0x20(%rbx), %rdi
    mov $3, %ecx
    rep movsb               # three bytes forwards
    std
    lea 0x18(%rbx), %rsi
    lea 0x38(%rbx), %rdi
    mov $2, %ecx
    rep movsq               # two words backwards
    cld
    mov $0x7f7f7f7f, %eax
    lea 0x40(%rbx), %rdi
    mov $2, %ecx
    rep stosl
    xor %ecx, %ecx
    rep stosb               # not once
    mov %rbx, %rsi
    lea 0x20(%rbx), %rdi
    mov $9, %ecx
    repe cmpsb              # the fourth pair differs
    lea 0x44(%rbx), %rdi
    mov $5, %ecx
    repne scasw             # found at once
    movabs $0xdead00000002, %rcx
    lea 0x50(%rbx), %rdi
    addr32 rep stosb        # counts in ECX: twice
    lea 0x18(%rbx), %rsi
    lodsb
    mov $60, %eax
    xor %edi, %edi
    syscall
    .data
    .globl d
d:  .ascii "abcx"
    .org d + 0x10
    .ascii "efghijkl"
    .quad 0x64
    .org d + 0x2000
