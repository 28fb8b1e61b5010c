// Addresses in one block that are worked out from another: by the distance of the two, and from before an array.
// build: -O2
#include <stdlib.h>

__attribute__((noipa)) static long at_distance(char *from, long by) {
    return *(from + by);
}

__attribute__((noipa)) static long counted_from_one(const long *before, long at) {
    return before[at];
}

// So that the block stays.
__attribute__((noipa)) static void keep(void *block) { (void)block; }

int main(void) {
    char *one = calloc(1000, 1), *other = calloc(1000, 1);
    long *array = calloc(20, sizeof *array);
    long sum = at_distance(one, 999) + counted_from_one(array - 1, 1) + counted_from_one(array - 1, 20);
    keep(other);
    free(array);
    free(other);
    free(one);
    return (int)sum;
}
