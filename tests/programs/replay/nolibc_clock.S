# build: -nostdlib -static
# Without a C library: RDTSC, getrandom and getpid, printed in hexadecimal. The smallest program whose
# output is never the same twice.
    .globl _start
_start:
    mov $20, %r12d
1:  rdtsc
    shl $32, %rdx
    or %rdx, %rax
    call print
    mov $318, %eax              # getrandom
    lea buffer(%rip), %rdi
    mov $8, %esi
    xor %edx, %edx
    syscall
    mov buffer(%rip), %rax
    call print
    dec %r12d
    jnz 1b
    mov $39, %eax               # getpid
    syscall
    call print
    mov $60, %eax               # exit
    xor %edi, %edi
    syscall

print:                          # rax, as 16 digits and a newline
    lea text(%rip), %rsi
    mov $16, %ecx
2:  rol $4, %rax
    mov %eax, %edx
    and $15, %edx
    lea digits(%rip), %rdi
    mov (%rdi,%rdx), %dl
    mov %dl, (%rsi)
    inc %rsi
    dec %ecx
    jnz 2b
    movb $10, (%rsi)
    mov $1, %eax                # write
    mov $1, %edi
    lea text(%rip), %rsi
    mov $17, %edx
    syscall
    ret

    .data
digits: .ascii "0123456789abcdef"
buffer: .quad 0
text:   .skip 17
    .section .note.GNU-stack,"",@progbits
