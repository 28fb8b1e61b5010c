# Loops until somebody sets the flag, and makes no system call meanwhile.
    .intel_syntax noprefix
    .globl _start, spin, flag
    .text
_start:
    xor ebx, ebx
spin:
    cmp dword ptr [rip + flag], 0
    je spin
    mov edi, 5
    mov eax, 60
    syscall
    .data
flag:
    .long 0
