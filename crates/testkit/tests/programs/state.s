# Instructions with large operands: x87 environment and state, FXSAVE, XSAVE (which reads
# its header before it writes), CMPXCHG16B.
#= instructions 18 loads 9 stores 6 syscalls 1
#> W d+0 28
#> R d+0 28
#> W d+40 108
#> R d+40 108
#> W d+100 512
#> R d+100 512
#> R d+400 576
#> W d+400 576
#> R d+800 832
#> W d+800 832
#> R d+800 832
#> R d+c0 16
#> W d+c0 16
#> R d+c8 8 0000000000000002
#> R d+41 1
    .globl _start
_start:
    lea d(%rip), %rbx
    fnstenv (%rbx)
    fldenv (%rbx)
    fnsave 0x40(%rbx)
    frstor 0x40(%rbx)
    fxsave 0x100(%rbx)
    fxrstor 0x100(%rbx)
    mov $3, %eax
    xor %edx, %edx
    xsave 0x400(%rbx)
    mov $7, %eax
    xsave 0x800(%rbx)
    xrstor 0x800(%rbx)
    lock cmpxchg16b 0xc0(%rbx)      # does not match, so RDX:RAX becomes 2:0x41
    mov 0xc8(%rbx), %rcx
    xlatb                           # [RBX + AL], AL = 0x41 by now
    mov $60, %eax
    syscall
    .data
    .balign 64
d:  .org d + 0xc0
    .quad 0x41, 2
    .org d + 0x2000
