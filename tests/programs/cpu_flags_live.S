// build: -nostdlib -static
// Flags across block ends: set before a jump, a call, a return, an indirect jump and a loop, and read
// after it; DF set over a call; registers all in use, so that nothing is free for the engine.
    .globl _start
    .text
_start:
    xor %r9d, %r9d
    mov $5000, %r10d
1:  cmp $1, %r10d
    call 9f                     // leaves flags alone
    setb %al                    // never
    movzbl %al, %eax
    add %rax, %r9
    test $3, %r10d
    lea 2f(%rip), %rax
    jmp *%rax
2:  jnz 3f
    inc %r9                     // every fourth: 1250
3:  stc
    jmp 4f
4:  adc $0, %r9                 // 5000
    std
    call 9f
    lea buffer+64(%rip), %rdi
    mov $7, %al
    stosb                       // downwards
    cld
    lea buffer+63(%rip), %rax
    cmp %rax, %rdi
    jne bad
    mov $0x7fffffff, %eax
    add $1, %eax
    jo 5f
    jmp bad
5:  jmp 6f
6:  jno bad
    jns bad
    jp 7f
    jmp bad
7:  dec %r10d
    jnz 1b
    cmp $6250, %r9
    jne bad
    mov $1, %eax; mov $2, %ecx; mov $3, %edx; mov $4, %ebx; mov $5, %ebp; mov $6, %esi; mov $7, %edi
    mov $8, %r8d; mov $9, %r9d; mov $10, %r10d; mov $11, %r11d; mov $12, %r12d; mov $13, %r13d
    mov $14, %r14d; mov $15, %r15d
    stc
8:  lea 1(%rax,%rcx), %rax
    lea (%rdx,%rbx), %rdx
    lea (%rbp,%rsi), %rbp
    lea (%rdi,%r8), %rdi
    lea (%r9,%r10), %r9
    lea (%r11,%r12), %r11
    lea (%r13,%r14), %r13
    jnc bad
    dec %r15                    // keeps carry
    jnz 8b
    add %rdx, %rax; add %rbp, %rax; add %rdi, %rax; add %r9, %rax; add %r11, %rax; add %r13, %rax
    cmp $904, %rax
    jne bad
    mov $1, %eax
    mov $1, %edi
    lea text(%rip), %rsi
    mov $3, %edx
    syscall
    xor %edi, %edi
    jmp exit
9:  ret
bad:
    mov $1, %edi
exit:
    mov $60, %eax
    syscall
text: .ascii "ok\n"
    .bss
buffer: .skip 128
