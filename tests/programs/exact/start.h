/* What a program without a libc needs to start and to stop, and the two functions that gcc calls
 * on its own. No CPUID, no dynamic linking: such a program executes the same instructions
 * whatever processor features an engine shows it. */
#ifndef START_H
#define START_H

static inline long system_call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

__attribute__((used)) void *memset(void *to, int byte, unsigned long count) {
    void *at = to;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(count) : "a"(byte) : "memory");
    return to;
}

__attribute__((used)) void *memcpy(void *to, const void *from, unsigned long count) {
    void *at = to;
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(count) : : "memory");
    return to;
}

int main(void);

__asm__(".globl _start\n"
        "_start:\n"
        "    xorl %ebp, %ebp\n"
        "    andq $-16, %rsp\n"
        "    call main\n"
        "    movl %eax, %edi\n"
        "    movl $231, %eax\n"
        "    syscall\n");

#endif
