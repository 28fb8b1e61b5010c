// build: -nostdlib -static -Wl,-N
// build: -nostdlib -static -Wl,-z,execstack -Wl,-z,noseparate-code -Wl,-N
// Code that changes itself in the very block that runs: an immediate two instructions ahead, the
// next instruction itself, and a loop whose body is patched at every turn. Text is writable.
    .globl _start
    .text
_start:
    xor %ebx, %ebx
    mov $100, %ebp
loop:
    lea 1f+1(%rip), %rax
    mov %ebp, (%rax)            // patches the immediate right below
1:  mov $0x11111111, %ecx
    add %ecx, %ebx
    lea 2f(%rip), %rax
    test $1, %bpl
    jz even
    movb $0x90, (%rax)          // odd: nop
    movb $0x90, 1(%rax)
    jmp 2f
even:
    movw $0xc3ff, (%rax)        // even: inc %ebx
2:  nop
    nop
    dec %ebp
    jnz loop
    // the sum of 1..100 and 50 increments
    cmp $5100, %ebx
    mov $1, %edi
    jne 3f
    mov $1, %eax
    lea text(%rip), %rsi
    mov $3, %edx
    syscall
    xor %edi, %edi
3:  mov $60, %eax
    syscall
text: .ascii "ok\n"
