# Masked moves and gathers: only the enabled elements are accessed, in the upper halves too.
#= instructions 17 loads 10 stores 5 syscalls 1
#> R d+0 32
#> R d+20 32
#> R d+40 4 00000001
#> R d+5c 4 00000008
#> W d+80 4 00000001
#> W d+9c 4 00000008
#> R d+48 4 00000003
#> R d+44 4 00000002
#> R d+0 32
#> R d+50 8 0000000600000005
#> R d+60 16
#> W d+a1 1 82
#> W d+ac 1 8d
#> R d+70 8
#> W d+c0 1
    .globl _start
_start:
    lea d(%rip), %rbx
    vmovdqu (%rbx), %ymm1               # mask: elements 0 and 7
    vmovdqu 0x20(%rbx), %ymm2           # indices 2, -, -, -, -, -, -, 1
    vpmaskmovd 0x40(%rbx), %ymm1, %ymm3
    vpmaskmovd %ymm3, %ymm1, 0x80(%rbx)
    vpgatherdd %ymm1, 0x40(%rbx,%ymm2,4), %ymm4
    vmovdqu (%rbx), %ymm1
    vpgatherdq %ymm1, 0x40(%rbx,%xmm2,8), %ymm4 # element 3: only the top of ymm1 is enabled
    movdqu 0x60(%rbx), %xmm5
    movdqa %xmm5, %xmm6
    lea 0xa0(%rbx), %rdi
    maskmovdqu %xmm5, %xmm6             # bytes 1 and 12
    movq 0x70(%rbx), %mm0
    add $0x20, %rdi
    maskmovq %mm0, %mm0
    mov $60, %eax
    syscall
    .data
d:  .long 0x80000000, 1, 2, 3, 4, 5, 6, 0x80000000
    .long 2, 9, 9, 2, 9, 9, 9, 1
    .long 1, 2, 3, 4, 5, 6, 7, 8
    .byte 1, 0x82, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x8d, 14, 15, 16
    .byte 0x90, 1, 1, 1, 1, 1, 1, 1
    .org d + 0x2000
