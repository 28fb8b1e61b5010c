// A far jump over any red zone: the access is inside another live block, and still wrong.
#include <stdlib.h>

int main(void) {
    char *one = malloc(1000);
    char *other = malloc(1000);
    // Blocks of 1000 bytes follow each other at a distance of 1008.
    volatile long far = 1508;
#ifdef FIXED
    far = 500;
#endif
    one[far] = 1; // FINDS heap-overflow
    free(one);
    free(other);
    return 0;
}
