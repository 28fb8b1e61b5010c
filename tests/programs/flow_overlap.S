// build: -nostdlib -static
// Overlapping code: a jump into the middle of an instruction, the same bytes decoded two ways in
// turn, jump to itself plus one, a one-instruction block, prefixes that pile up, long no-ops.
    .globl _start
    .text
_start:
    xor %ebx, %ebx
    mov $1000, %ebp
loop:
    lea hidden(%rip), %rax
    mov %ebp, %ecx
    and $1, %ecx
    add %rcx, %rax
    xor %ecx, %ecx
    jmp *%rax                   // at +0 or at +1
hidden:
    .byte 0xb9                  // +0: mov $0x9005c383, %ecx ; +1: add $5, %ebx; nop
    .byte 0x83, 0xc3, 0x05, 0x90
    add $1, %ebx
    .byte 0xeb, 0xff            // jmp to the 0xff: inc %eax spelled ff c0
    .byte 0xc0
    .byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    .byte 0x2e, 0x3e, 0x36, 0x48, 0x89, 0xd8          // segment prefixes without effect
    .byte 0xf3, 0x90
    .byte 0x67, 0x8d, 0x04, 0x1b                      // lea with a 32-bit address
    dec %ebp
    jnz loop
    mov $1, %edi
    cmp $3500, %ebx             // 1000 and 500 times five
    jne 1f
    mov $1, %eax
    lea text(%rip), %rsi
    mov $3, %edx
    syscall
    xor %edi, %edi
1:  mov $60, %eax
    syscall
text: .ascii "ok\n"
