// aligned_alloc and an index just past the end.
#include <stdlib.h>

int main(void) {
    char *p = aligned_alloc(64, 128);
#ifdef FIXED
    p[127] = 1;
#else
    p[128] = 1; // FINDS heap-overflow
#endif
    free(p);
    return 0;
}
