// One element too many is written.
#include <stdlib.h>

int main(void) {
    int *p = malloc(10 * sizeof *p);
#ifdef FIXED
    int last = 9;
#else
    int last = 10;
#endif
    for (int i = 0; i <= last; i++)
        p[i] = i; // FINDS heap-overflow
    free(p);
    return 0;
}
