/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * Memory by mmap, mprotect, mremap, madvise, brk and munmap; reading it after each change. */
#include "start.h"

static long call6(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

int main(void) {
    unsigned char *pages = (unsigned char *)call6(9, 0, 3 * 4096, 3, 0x22, -1, 0);
    for (int i = 0; i < 3 * 4096; i += 512) pages[i] = i >> 9;
    system_call(10, (long)pages, 4096, 1);
    int sum = pages[512];
    system_call(10, (long)pages, 4096, 3);
    pages = (unsigned char *)call6(25, (long)pages, 3 * 4096, 8 * 4096, 1, 0, 0);
    sum += pages[512 * 20] + pages[7 * 4096];
    system_call(28, (long)pages, 4096, 4);
    sum += pages[512];
    char *end = (char *)system_call(12, 0, 0, 0);
    system_call(12, (long)end + 8192, 0, 0);
    for (int i = 0; i < 8192; i += 1024) end[i] = i >> 10, sum += end[i];
    system_call(11, (long)pages, 8 * 4096, 0);
    return sum & 127;
}
