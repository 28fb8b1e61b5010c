# build: -nostdlib -static -no-pie
# x87: loads and stores of all sizes, the register stack, comparisons, environment and state
# saved and restored, transcendental functions.
    .globl _start
_start:
    mov $20, %ecx
    fldz
1:  mov %ecx, number(%rip)
    fildl number(%rip)
    fsqrt
    fsin
    faddp
    fldpi
    fstpt wide(%rip)
    fldt wide(%rip)
    fmulp
    fsts short_float(%rip)
    fldl half(%rip)
    fucomip %st(1), %st
    jbe 2f
    fchs
2:  fnstenv area(%rip)
    fldenv area(%rip)
    fnstcw control(%rip)
    fldcw control(%rip)
    loop 1b
    fnsave area(%rip)
    frstor area(%rip)
    fistpll number(%rip)
    fxsave area(%rip)
    mov number(%rip), %edi
    and $127, %edi
    mov $60, %eax
    syscall
    .data
    .balign 16
half:
    .double 0.5
number:
    .quad 0
wide:
    .skip 16
short_float:
    .long 0
control:
    .long 0
    .balign 16
area:
    .skip 512
