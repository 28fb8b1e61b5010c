// The pointer itself is moved into another live block, kept, and used there later: no instruction adds anything
// to it where it is used.
// screen: blind
// build: -O2
#include <stdlib.h>

static char *volatile kept;

// So that the block stays.
__attribute__((noipa)) static void keep(void *block) { (void)block; }

int main(void) {
    char *one = malloc(1000);
    char *other = malloc(1000);
#ifdef FIXED
    kept = one + 500;
#else
    kept = one + 1508;
#endif
    *kept = 1; // FINDS heap-overflow
    keep(other);
    free(one);
    free(other);
    return 0;
}
