// One element too many is read.
#include <stdlib.h>
#include <string.h>

int main(void) {
    char *p = malloc(13);
    memset(p, 1, 13);
    int sum = 0;
#ifdef FIXED
    int end = 13;
#else
    int end = 14;
#endif
    for (int i = 0; i < end; i++)
        sum += p[i]; // FINDS heap-overflow
    free(p);
    return sum > 100000;
}
