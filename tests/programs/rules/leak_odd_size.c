// build: -O2
// rules: leaks
// A pointer in a structure of 25 bytes, which is copied in two pieces that overlap by part of it.
#include <stdlib.h>
#include <string.h>

struct odd {
    long number;
    char *name;
    char rest[9];
} __attribute__((packed, aligned(8)));

static char kept[32] __attribute__((aligned(16)));

__attribute__((noinline)) static void keep(long size) {
    struct odd odd = { size, malloc(size), "tail" }; // LOSES definite-leak
    memcpy(kept, &odd, 25);
}

int main(void) {
    keep(40);
#ifndef FIXED
    memset(kept, 0, 25);
#endif
    exit(kept[16] == 'x');
}
