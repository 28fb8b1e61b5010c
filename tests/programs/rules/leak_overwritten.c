// rules: leaks
// The only pointer to a block is overwritten.
#include <stdlib.h>

static char *kept;

int main(void) {
    kept = malloc(10); // LOSES definite-leak
#ifdef FIXED
    free(kept);
#endif
    kept = malloc(20);
    free(kept);
    kept = NULL;
    exit(0);
}
