// malloc fails and nobody looks.
#include <stdlib.h>

int main(void) {
    volatile size_t size = 1ull << 46;
    char *p = malloc(size);
#ifdef FIXED
    if (p == NULL)
        return 0;
#endif
    p[10] = 1; // FINDS null-pointer
    return 0;
}
