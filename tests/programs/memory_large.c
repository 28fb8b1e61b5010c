// build: -O2
// Allocations of all sizes, calloc of large blocks, alignments, many maps, deep and wide use of the
// heap with a checksum.
#include "check.h"
#include <malloc.h>
#include <sys/mman.h>
int main(void)
{
    uint32_t seed = 1, sum = 0;
    enum { SLOTS = 500 };
    static unsigned char *slot[SLOTS];
    static size_t length[SLOTS];
    for (int i = 0; i < 40000; i++) {
        seed = seed * 1664525 + 1013904223;
        unsigned which = (seed >> 8) % SLOTS;
        if (slot[which]) {
            for (size_t k = 0; k < length[which]; k += 64) CHECK(slot[which][k] == (unsigned char)which);
            sum = sum * 31 + (uint32_t)length[which];
            free(slot[which]);
        }
        length[which] = (seed >> 20) % (i % 100 == 0 ? 300000 : 3000) + 1;
        slot[which] = malloc(length[which]);
        memset(slot[which], (int)which, length[which]);
    }
    long *zero = calloc(1 << 20, 8);
    for (int i = 0; i < 1 << 20; i += 511) CHECK(zero[i] == 0);
    for (size_t align = 16; align <= 1 << 20; align *= 4) {
        void *p;
        CHECK(!posix_memalign(&p, align, 100) && (uintptr_t)p % align == 0);
        free(p);
    }
    char *maps[1000];
    for (int i = 0; i < 1000; i++) {
        maps[i] = mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(maps[i] != MAP_FAILED);
    }
    for (int i = 0; i < 1000; i += 3) MUST(munmap(maps[i], 4096));
    printf("sum %08x\n", sum);
    return ok();
}
