# build: -nostdlib -static -no-pie
# Faults caught and repaired: UD2, a breakpoint, a division by zero, a load from nowhere, REP MOVS
# that faults midway; the handler changes registers in the context.
    .globl _start
_start:
    lea action(%rip), %rsi
    xor %edx, %edx
    mov $8, %r10d
    lea signals(%rip), %rbx
1:  movzbl (%rbx), %edi
    mov $13, %eax
    syscall
    inc %rbx
    cmpb $0, (%rbx)
    jne 1b
    ud2                             # two bytes
    int3
    xor %ecx, %ecx
    mov $1, %eax
    xor %edx, %edx
    .byte 0xf7, 0xf1                # div %ecx: two bytes
    xor %r8d, %r8d
    .byte 0x41, 0x8b, 0x00          # mov (%r8), %eax: three bytes
    mov $0x10000000, %edi           # a page, and nothing behind it
    mov $4096, %esi
    mov $3, %edx
    mov $0x32, %r10d
    mov $-1, %r8
    xor %r9d, %r9d
    mov $9, %eax
    syscall
    lea action(%rip), %rsi
    mov $0x10000ff0, %edi
    mov $32, %ecx
    rep movsb                       # half of it faults: two bytes are skipped
    mov %ecx, %edi                  # 16 are left
    mov $60, %eax
    syscall
handler:                            # rdi: signal, rdx: context with RIP at 168, R8 at 40
    cmp $5, %edi
    je 3f                           # a breakpoint is over already
    addq $2, 168(%rdx)
    cmp $11, %edi
    jne 3f
    mov 168(%rdx), %rax
    cmpq $0, 40(%rdx)               # R8 is zero only for the load
    jne 3f
    incq 168(%rdx)
3:  ret
restore:
    mov $15, %eax
    syscall
    .data
action:
    .quad handler, 0x04000004, restore, 0
signals:
    .byte 4, 5, 8, 11, 0
