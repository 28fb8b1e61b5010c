// A length went negative on its way to malloc.
#include <stdlib.h>

int main(void) {
    volatile int length = 3;
#ifdef FIXED
    length = 8;
#endif
    char *p = malloc((size_t)(long)(length - 4)); // FINDS bad-size
    free(p);
    return 0;
}
