# Signals: an instruction that faults is no instruction; the handler moves RIP past it. A
# breakpoint is one. A handler of a signal sent to oneself runs right after the system call. REP
# STOS that faults midway has written what it has written, and is finished after the repair.
#= syscalls 14 returns 0 calls 0
    .globl _start
_start:
    mov $4, %edi
    lea skip2(%rip), %rbx
    lea d(%rip), %rsi
    mov %rbx, (%rsi)
    xor %edx, %edx
    mov $8, %r10d
    mov $13, %eax
    syscall                         # 1: SIGILL
    mov $5, %edi
    lea skip0(%rip), %rbx
    mov %rbx, (%rsi)
    mov $13, %eax
    syscall                         # 2: SIGTRAP
    mov $10, %edi
    mov $13, %eax
    syscall                         # 3: SIGUSR1
    mov $11, %edi
    lea repair(%rip), %rbx
    mov %rbx, (%rsi)
    mov $13, %eax
    syscall                         # 4: SIGSEGV
    ud2                             # 5: sigreturn
    int3                            # 6: sigreturn
    mov $39, %eax
    syscall                         # 7: getpid
    mov %eax, %edi
    mov $10, %esi
    mov $62, %eax
    syscall                         # 8: kill; 9: sigreturn
    mov $0x700000, %edi
    mov $0x2000, %esi
    mov $3, %edx
    mov $0x32, %r10d
    mov $-1, %r8
    xor %r9d, %r9d
    mov $9, %eax
    syscall                         # 10: mmap two pages
    mov $0x701000, %edi
    mov $0x1000, %esi
    mov $0, %edx
    mov $10, %eax
    syscall                         # 11: mprotect the second
    mov $0x700ffe, %edi
    mov $4, %ecx
    mov $0x5a, %eax
    rep stosb                       # faults on the third; 12: mprotect, 13: sigreturn
    mov $60, %eax
    xor %edi, %edi
    syscall                         # 14
skip2:
    addq $2, 168(%rdx)              # RIP in the context
skip0:
    lea 8(%rsp), %rsp               # as if the handler had returned
    mov $15, %eax
    syscall
repair:
    mov $0x701000, %edi
    mov $0x1000, %esi
    mov $3, %edx
    mov $10, %eax
    syscall
    lea 8(%rsp), %rsp
    mov $15, %eax
    syscall
    .data
d:  .quad 0, 0x04000004, skip0, 0   # handler, SA_SIGINFO | SA_RESTORER
    .org d + 0x2000
