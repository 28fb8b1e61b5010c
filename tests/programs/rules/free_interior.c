// Frees a pointer into the middle of a block.
#include <stdlib.h>

int main(void) {
    int *p = malloc(10 * sizeof *p);
    int *q = p + 4;
#ifdef FIXED
    q = p;
#endif
    free(q); // FINDS unmatched-free
    return 0;
}
