// The new half of a grown array.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    int *p = calloc(4, sizeof *p);
    p = realloc(p, 8 * sizeof *p);
#ifdef FIXED
    for (int i = 4; i < 8; i++)
        p[i] = 0;
#endif
    for (int i = 0; i < 8; i++)
        if (p[i] == 77) // FINDS uninitialised-read
            puts("found");
    free(p);
    return 0;
}
