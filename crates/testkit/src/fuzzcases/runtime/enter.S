# Gets in and out of one case: loads the whole user-visible state, jumps to the case, and takes
# the state down again at the exit.
#
# Rules of this file: between loading the flags and the jump, and between the exit and taking the
# flags down, nothing but moves: they leave the flags alone. The case owns every register, rsp
# included, so our own stack pointer waits in `saved_rsp`.

#include "layout.h"

    .text
    .globl _start
_start:
    xorl %ebp, %ebp
    movq %rsp, %rdi             # argc and argv, as the kernel left them
    andq $-16, %rsp
    call runtime_main           # does not come back

    .globl restore_signal
restore_signal:
    movl $15, %eax              # rt_sigreturn
    syscall

# run_case(rdi = address of the case's first instruction)
    .globl run_case
run_case:
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rdi, case_entry(%rip)
    movq %rsp, saved_rsp(%rip)
    fxrstor64 STATE_IN + STATE_FX
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmovdqu STATE_IN + STATE_YMM + 32 * \n, %ymm\n
    .endr
    pushq STATE_IN + STATE_FLAGS
    popfq
    movq STATE_IN + 0, %rax
    movq STATE_IN + 8, %rcx
    movq STATE_IN + 16, %rdx
    movq STATE_IN + 24, %rbx
    movq STATE_IN + 40, %rbp
    movq STATE_IN + 48, %rsi
    movq STATE_IN + 56, %rdi
    .irp n, 8,9,10,11,12,13,14,15
    movq STATE_IN + 8 * \n, %r\n
    .endr
    movq STATE_IN + 32, %rsp
    jmp *case_entry(%rip)

# Where a case ends that raised no signal.
    .globl capture_state
capture_state:
    movq %rax, STATE_OUT + 0
    movq %rcx, STATE_OUT + 8
    movq %rdx, STATE_OUT + 16
    movq %rbx, STATE_OUT + 24
    movq %rsp, STATE_OUT + 32
    movq %rbp, STATE_OUT + 40
    movq %rsi, STATE_OUT + 48
    movq %rdi, STATE_OUT + 56
    .irp n, 8,9,10,11,12,13,14,15
    movq %r\n, STATE_OUT + 8 * \n
    .endr
    movq saved_rsp(%rip), %rsp
    pushfq
    popq STATE_OUT + STATE_FLAGS
    pushq $0x202                # a case may have set DF or AC
    popfq
    fxsave64 STATE_OUT + STATE_FX
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmovdqu %ymm\n, STATE_OUT + STATE_YMM + 32 * \n
    .endr

# Where the signal handler resumes after it has taken the state down itself.
    .globl leave_case
leave_case:
    fninit
    ldmxcsr default_mxcsr(%rip)
    vzeroupper
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    ret

    .section .rodata
default_mxcsr:
    .long 0x1f80

    .bss
    .balign 8
    .globl saved_rsp
saved_rsp:
    .quad 0
case_entry:
    .quad 0

    .section .note.GNU-stack, "", @progbits
