// An interior pointer goes backwards out of its block.
#include <stdlib.h>

int main(void) {
    int *p = malloc(8 * sizeof *p);
    for (int i = 0; i < 8; i++)
        p[i] = i;
    int *q = p + 5, sum = 0;
#ifdef FIXED
    int steps = 5;
#else
    int steps = 6;
#endif
    for (int i = 0; i < steps; i++)
        sum += *--q; // FINDS heap-overflow
    free(p);
    return sum > 100000;
}
