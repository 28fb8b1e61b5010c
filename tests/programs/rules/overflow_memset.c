// memset of more than the block.
#include <stdlib.h>
#include <string.h>

int main(void) {
    volatile size_t size = 90;
#ifdef FIXED
    size = 80;
#endif
    char *p = malloc(80);
    memset(p, 7, size); // FINDS heap-overflow
    free(p);
    return 0;
}
