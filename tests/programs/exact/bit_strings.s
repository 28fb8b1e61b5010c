# build: -nostdlib -static -no-pie
# BT, BTS, BTR, BTC on memory with offsets in registers that reach far outside the operand, both
# ways; bit scans and counts; a sieve made of them.
    .globl _start
_start:
    lea sieve(%rip), %rbx
    mov $2, %ecx
1:  bt %rcx, (%rbx)
    jc 3f
    lea (%rcx,%rcx), %rdx
2:  cmp $1000, %rdx
    jae 3f
    bts %rdx, (%rbx)
    add %rcx, %rdx
    jmp 2b
3:  inc %ecx
    cmp $32, %ecx
    jb 1b
    lea sieve + 64(%rip), %rsi
    mov $-500, %rax
    btc %rax, (%rsi)
    btr %eax, (%rsi)
    bts %ax, (%rsi)
    lock btcl $7, (%rsi)
    xor %edi, %edi
    mov $15, %ecx
4:  popcntq (%rbx,%rcx,8), %rdx
    bsfq (%rbx,%rcx,8), %rax
    add %edx, %edi
    dec %ecx
    jns 4b
    and $127, %edi
    mov $60, %eax
    syscall
    .bss
    .balign 8
sieve:
    .skip 256
