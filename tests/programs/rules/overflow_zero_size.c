// A block of no bytes has no first byte.
#include <stdlib.h>

int main(void) {
    volatile size_t size = 0;
#ifdef FIXED
    size = 1;
#endif
    char *p = malloc(size);
    p[0] = 1; // FINDS heap-overflow
    free(p);
    return 0;
}
