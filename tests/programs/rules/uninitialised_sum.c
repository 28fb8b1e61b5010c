// A sum over a partly written array decides.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    int *p = malloc(10 * sizeof *p), sum = 0;
#ifdef FIXED
    int end = 10;
#else
    int end = 9;
#endif
    for (int i = 0; i < end; i++)
        p[i] = i;
    for (int i = 0; i < 10; i++)
        sum += p[i];
    if (sum > 1000000) // FINDS uninitialised-read
        puts("large");
    free(p);
    return 0;
}
