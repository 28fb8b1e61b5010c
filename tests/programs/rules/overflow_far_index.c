// An index that is far too large, in optimised code: one instruction adds it and lands in another live block.
// build: -O2
#include <stdlib.h>

__attribute__((noipa)) static int get(const int *row, long at) {
    return row[at]; // FINDS heap-overflow
}

// So that the block stays.
__attribute__((noipa)) static void keep(void *block) { (void)block; }

int main(void) {
    int *one = calloc(250, sizeof *one);
    int *other = calloc(250, sizeof *other);
    long at = 400;
#ifdef FIXED
    at = 200;
#endif
    int got = get(one, at);
    keep(other);
    free(one);
    free(other);
    return got;
}
