// The element before the first.
#include <stdlib.h>

int main(void) {
    long *p = calloc(4, sizeof *p);
#ifdef FIXED
    int i = 3;
#else
    int i = -3;
#endif
    long value = p[i]; // FINDS heap-overflow
    free(p);
    return value > 1;
}
