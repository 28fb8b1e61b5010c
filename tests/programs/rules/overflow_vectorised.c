// build: -O3
// A vectorised loop writes past the end.
#include <stdlib.h>

__attribute__((noinline)) static void fill(int *p, int count) {
    for (int i = 0; i < count; i++)
        p[i] = i * 3; // FINDS heap-overflow
}

int main(void) {
    int *p = malloc(64 * sizeof *p);
#ifdef FIXED
    fill(p, 64);
#else
    fill(p, 66);
#endif
    int value = p[3];
    free(p);
    return value - 9;
}
