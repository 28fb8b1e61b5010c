// A small block is taken for a large structure: the member that is written lies in the next live block.
// build: -O2
#include <stdlib.h>

struct small { long words[5]; };
struct large { long words[30]; };

__attribute__((noipa)) static void put(struct large *large) {
    large->words[9] = 1; // FINDS heap-overflow
}

// So that the block stays.
__attribute__((noipa)) static void keep(void *block) { (void)block; }

int main(void) {
#ifdef FIXED
    void *one = malloc(sizeof(struct large));
#else
    void *one = malloc(sizeof(struct small));
#endif
    void *other = malloc(sizeof(struct small));
    put(one);
    keep(other);
    free(one);
    free(other);
    return 0;
}
