# Adds up a table of four numbers, a hundred times, asks for its process number, and exits with the
# last sum (10). Without a C library, so that every number of `whydunit count` can be checked by
# hand (docs/count.md).
    .intel_syntax noprefix
    .globl _start
    .text
_start:
    mov ebx, 100            # rounds
round:
    call add_up
    dec ebx
    jnz round               # taken 99 times
    mov r12d, eax
    mov eax, 39             # getpid
    syscall
    mov edi, r12d
    mov eax, 60             # exit
    syscall

add_up:
    xor eax, eax
    xor ecx, ecx
again:
    add eax, [table + ecx * 4]
    inc ecx
    cmp ecx, 4
    jne again               # taken 3 times of 4
    ret

    .section .rodata
table:
    .long 1, 2, 3, 4
    .section .note.GNU-stack, "", @progbits
