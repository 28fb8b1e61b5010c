# build: -nostdlib -static -no-pie
# Code that rewrites an immediate, then a whole instruction, in the loop it runs in, and code
# built in fresh memory and called.
    .globl _start
_start:
    mov $9, %eax                    # a page to read, write and execute
    xor %edi, %edi
    mov $4096, %esi
    mov $7, %edx
    mov $0x22, %r10d
    mov $-1, %r8
    xor %r9d, %r9d
    syscall
    mov %rax, %rbx
    lea model(%rip), %rsi
    mov %rax, %rdi
    mov $model_end - model, %ecx
    rep movsb
    xor %r12d, %r12d
    mov $20, %r13d
1:  mov %r13d, 1(%rbx)              # the immediate of the first instruction
    call *%rbx
    add %eax, %r12d
    cmp $10, %r13d
    jne 2f
    movw $0x9090, 5(%rbx)           # no more doubling
2:  dec %r13d
    jnz 1b
    mov %r12d, %edi
    and $127, %edi
    mov $60, %eax
    syscall
model:
    mov $0, %eax
    add %eax, %eax
    ret
model_end:
