// The access begins inside and ends outside.
#include <stdlib.h>
#include <string.h>

int main(void) {
    char *p = malloc(10);
    memset(p, 0, 10);
#ifdef FIXED
    int at = 6;
#else
    int at = 8;
#endif
    int value = *(int *)(p + at); // FINDS heap-overflow
    free(p);
    return value > 1;
}
