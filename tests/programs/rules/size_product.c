// The product of two reasonable numbers is not.
#include <stdlib.h>

int main(void) {
    volatile long rows = 1l << 32, columns = 1l << 32;
#ifdef FIXED
    rows = columns = 4;
#endif
    int *p = calloc(rows, columns); // FINDS bad-size
    free(p);
    return 0;
}
