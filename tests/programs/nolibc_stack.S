// build: -nostdlib -static
// build: -nostdlib -static-pie
// args: first second
// No libc: walks argc, argv, envp and auxv by hand, checks the entry state the ABI promises
// (aligned stack, AT_PAGESZ, AT_ENTRY, AT_PHDR inside the image, NULL terminators).
    .globl _start
    .text
_start:
    mov %rsp, %rbx
    test $15, %spl              // the ABI: 16-byte aligned at entry
    jnz fail
    cmpq $3, (%rbx)             // argc
    jne fail
    cmpq $0, 32(%rbx)           // argv[3] is the terminator
    jne fail
    lea 40(%rbx), %rsi
1:  lodsq                       // skip envp
    test %rax, %rax
    jnz 1b
    xor %r12d, %r12d            // bit set of what was found
2:  lodsq
    mov %rax, %rcx
    lodsq
    cmp $0, %rcx
    je 5f
    cmp $6, %rcx                // AT_PAGESZ
    jne 3f
    cmp $4096, %rax
    jne fail
    or $1, %r12d
3:  cmp $9, %rcx                // AT_ENTRY
    jne 4f
    lea _start(%rip), %rdx
    cmp %rdx, %rax
    jne fail
    or $2, %r12d
4:  cmp $25, %rcx               // AT_RANDOM
    jne 2b
    mov (%rax), %rdx            // readable
    or $4, %r12d
    jmp 2b
5:  cmp $7, %r12d
    jne fail
    mov $1, %eax
    mov $1, %edi
    lea text(%rip), %rsi
    mov $3, %edx
    syscall
    xor %edi, %edi
    jmp exit
fail:
    mov $1, %edi
exit:
    mov $60, %eax
    syscall
    .section .rodata
text: .ascii "ok\n"
