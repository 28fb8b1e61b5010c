// memcpy of more than the target has room for.
#include <stdlib.h>
#include <string.h>

static char source[200];

int main(void) {
    volatile size_t size = 130;
#ifdef FIXED
    size = 120;
#endif
    char *p = malloc(120);
    memcpy(p, source, size); // FINDS heap-overflow
    free(p);
    return 0;
}
