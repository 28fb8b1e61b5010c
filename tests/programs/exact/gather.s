# build: -nostdlib -static -no-pie
# AVX2 gathers and masked moves with changing masks, none and all elements enabled among them;
# MASKMOVDQU; non-temporal stores.
    .globl _start
_start:
    lea data(%rip), %rbx
    vmovdqu (%rbx), %ymm7           # indices
    mov $8, %ecx
1:  vmovd %ecx, %xmm0
    vpbroadcastd %xmm0, %ymm0
    vpcmpgtd %ymm0, %ymm7, %ymm1    # mask
    vmovdqa %ymm1, %ymm2
    vmovdqa %ymm1, %ymm3
    vpgatherdd %ymm2, (%rbx,%ymm7,4), %ymm4
    vpaddd %ymm4, %ymm6, %ymm6
    vpmaskmovd 32(%rbx), %ymm1, %ymm5
    vpmaskmovd %ymm5, %ymm1, 96(%rbx)
    vpmaskmovq %xmm5, %xmm1, 128(%rbx)
    vgatherdpd %ymm3, (%rbx,%xmm7,8), %ymm8
    lea 160(%rbx), %rdi
    vmaskmovdqu %xmm1, %xmm5
    dec %ecx
    jns 1b
    vmovntdq %ymm6, 192(%rbx)
    vpsadbw %ymm6, %ymm6, %ymm6
    vzeroupper
    mov 192(%rbx), %edi
    and $127, %edi
    mov $60, %eax
    syscall
    .data
    .balign 32
data:
    .long 0, 1, 2, 3, 4, 5, 6, 7
    .long 10, 11, 12, 13, 14, 15, 16, 17
    .skip 256
