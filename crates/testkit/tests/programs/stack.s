# Every way to use the stack: push and pop of registers, memory, flags and 16 bits, call and
# return with and without cleaning up, ENTER with nesting, LEAVE, a pop relative to RSP.
#= instructions 28 calls 3 returns 3 ticks 4 branches 0 syscalls 1 loads 13 stores 15
#> W d+ff8 8 0000000000000007
#> R d+8 8 1111111111111111
#> W d+ff0 8 1111111111111111
#> R d+ff0 8 1111111111111111
#> W d+10 8 1111111111111111
#> R d+ff8 8 0000000000000007
#> W d+ffe 2 2222
#> R d+ffe 2 2222
#> W d+ff8 8 0000000000000246
#> R d+ff8 8 0000000000000246
#> W d+ff8 8
#> R d+ff8 8
#> W d+ff8 8
#> R d+ff8 8
#> R d+18 8
#> W d+ff8 8
#> R d+ff8 8
#> R d+7f8 8
#> R d+7f0 8
#> W d+ff8 8 0000000000600800
#> W d+ff0 8
#> W d+fe8 8
#> W d+fe0 8 0000000000600ff8
#> R d+ff8 8 0000000000600800
#> W d+ff8 8 0000000000000009
#> W d+ff0 8 0000000000000005
#> R d+ff0 8 0000000000000005
#> W d+ff8 8 0000000000000005
    .globl _start
_start:
    lea d + 0x1000(%rip), %rsp      # 1
    pushq $7
    pushq d + 8(%rip)
    popq d + 0x10(%rip)
    pop %rax                        # 5
    pushw $0x2222
    popw %ax
    cmp %rsp, %rsp                  # ZF and PF: flags 0x246
    pushfq
    popfq                           # 10
    call plain
    call cleaning
    call *d + 0x18(%rip)
    lea d + 0x800(%rip), %rbp
    enter $16, $3                   # 15
    leave
    pushq $9
    pushq $5
    popq (%rsp)                     # goes where RSP points after the pop
    mov $60, %eax                   # 20
    xor %edi, %edi
    syscall                         # 22
plain:
    ret                             # 1, and once more for the indirect call
    nop
cleaning:
    nop
    lea -16(%rsp), %rcx
    mov %rcx, %rcx
    ret $0
    .data
d:  .quad 0
    .quad 0x1111111111111111, 0, plain
    .org d + 0x2000
