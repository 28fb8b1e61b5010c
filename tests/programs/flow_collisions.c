// build: -O1
// Many indirect targets whose low 16 (and 20, and 24) address bits are equal, called and returned
// from in a shuffled order: the worst case of a hash over address bits.
#include "check.h"
#include <sys/mman.h>
enum { TARGETS = 300 };
typedef uint64_t (*function)(uint64_t);
int main(void)
{
    function table[TARGETS];
    char *base = mmap(NULL, (size_t)TARGETS << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(base != MAP_FAILED);
    base = (char *)(((uintptr_t)base + 0xffff) & ~0xffffull);
    for (int i = 0; i < TARGETS - 1; i++) {
        unsigned char *at = (unsigned char *)base + ((size_t)i << 16) + 0x40;
        /* lea rax, [rdi+rdi*2+disp32]; ret */
        memcpy(at, "\x48\x8d\x84\x7f", 4);
        memcpy(at + 4, &(int32_t){i}, 4);
        at[8] = 0xc3;
        table[i] = (function)(void *)at;
    }
    MUST(mprotect(base, (size_t)(TARGETS - 1) << 16, PROT_READ | PROT_EXEC));
    uint64_t x = 1, count = 0;
    for (int round = 0; round < 2000; round++)
        for (int i = 0; i < 100; i++) x = table[(x >> 5) % (TARGETS - 1)](x), count++;
    printf("%lu calls, %016lx\n", count, x);
    return ok();
}
