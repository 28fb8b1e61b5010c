// A far jump over any red zone: the access is inside another live block, and still wrong.
#include <stdlib.h>

int main(void) {
    char *one = malloc(1000);
    char *other = malloc(1000);
    long distance = other - one;
    volatile long far = distance + 500;
#ifdef FIXED
    far = 500;
#endif
    one[far] = 1; // FINDS heap-overflow
    free(one);
    free(other);
    return 0;
}
