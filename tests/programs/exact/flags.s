# build: -nostdlib -static -no-pie
# PUSHF, POPF, LAHF, SAHF, CMC, SETcc and CMOVcc chains: flags that live across many instructions.
# The flags pushed must not show that anyone is stepping.
    .globl _start
_start:
    mov $40, %r12d
    xor %r13d, %r13d
1:  mov %r12d, %eax
    imul $0x9e3779b1, %eax, %eax
    add %eax, %eax
    pushfq
    pop %rdx
    and $0x1cd5, %edx               # arithmetic flags and TF, which nobody has set
    add %edx, %r13d
    push %rdx
    popfq
    lahf
    cmc
    sahf
    seto %cl
    setbe %ch
    cmovs %r12d, %ecx
    adc %ecx, %r13d
    rcr $1, %r13d
    std
    pushfq
    cld
    popfq
    cld
    inc %eax                        # leaves the carry alone
    sbb $0, %r13d
    dec %r12d
    jnz 1b
    mov %r13d, %edi
    and $127, %edi
    mov $60, %eax
    syscall
