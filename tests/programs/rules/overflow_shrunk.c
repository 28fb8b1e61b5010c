// realloc made the block smaller; an old index is used.
#include <stdlib.h>

int main(void) {
    char *p = malloc(100);
    p[70] = 1;
    p = realloc(p, 40);
#ifdef FIXED
    p[30] = 2;
#else
    p[70] = 2; // FINDS heap-overflow
#endif
    free(p);
    return 0;
}
