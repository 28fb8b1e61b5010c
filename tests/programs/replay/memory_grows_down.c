// build: -O1
// A stack that is made executable as a whole, as the C library does for a library that wants it:
// with PROT_GROWSDOWN the kernel goes on to the beginning of the mapping, and to what it grows to.
#include "check.h"
#include <sys/mman.h>
#include <time.h>

static int __attribute__((noinline)) deep(int levels)
{
    volatile char room[4096];
    room[0] = (char)levels;
    return levels == 0 ? room[0] : deep(levels - 1) + room[0] % 2;
}

int main(void)
{
    // mov %edi, %eax; add $1, %eax; ret
    static const unsigned char code[] = {0x89, 0xf8, 0x83, 0xc0, 0x01, 0xc3};
    unsigned char here[64];
    struct timespec now;
    char *page = (char *)((unsigned long)here & ~4095ul);
    int odd = deep(100);
    MUST(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN));
    memcpy(here, code, sizeof code);
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%d of %d\n", ((int (*)(int))here)((int)now.tv_nsec), odd + deep(700));
    // What is below has changed too.
    unsigned char *below = (unsigned char *)page - 20 * 4096;
    memcpy(below, code, sizeof code);
    CHECK(((int (*)(int))below)(6) == 7);
    MUST(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_GROWSDOWN));
    printf("%d\n", deep(1200));
    CHECK(mprotect(&odd, 1, PROT_READ | PROT_GROWSDOWN) == -1);
    puts("ok");
}
