// modes: plain,count,trace,ticks
//
// Tables where sanitizers have theirs, with nothing but PROT_NONE in the gaps between them, as
// ThreadSanitizer, MemorySanitizer and Go's race detector lay them out.
#include "check.h"
#include <sys/mman.h>

static const struct {
    unsigned long start, end;
    int used;
} RANGES[] = {
    {0x10000000000, 0x100000000000, 1},  {0x100000000000, 0x110000000000, 0}, {0x110000000000, 0x200000000000, 1},
    {0x200000000000, 0x300000000000, 1}, {0x300000000000, 0x400000000000, 1}, {0x400000000000, 0x500000000000, 0},
    {0x500000000000, 0x510000000000, 1}, {0x600000000000, 0x610000000000, 1}, {0x610000000000, 0x700000000000, 0},
};

int main(void)
{
    for (unsigned i = 0; i < sizeof RANGES / sizeof *RANGES; i++) {
        int protection = RANGES[i].used ? PROT_READ | PROT_WRITE : PROT_NONE;
        unsigned long *start = (unsigned long *)RANGES[i].start, bytes = RANGES[i].end - RANGES[i].start;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
        CHECK(mmap(start, bytes, protection, flags, -1, 0) == start);
        if (RANGES[i].used) {
            start[5] = i;
            start[bytes / 16] = i + 1;
            CHECK(start[5] == i && start[bytes / 16] == i + 1 && start[bytes / 8 - 1] == 0);
        }
    }
    for (unsigned i = 0; i < sizeof RANGES / sizeof *RANGES; i++)
        CHECK(munmap((void *)RANGES[i].start, RANGES[i].end - RANGES[i].start) == 0);
    return ok();
}
