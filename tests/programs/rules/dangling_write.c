// Writes to a freed block through an interior pointer.
#include <stdlib.h>

int main(void) {
    long *block = malloc(20 * sizeof *block);
    long *middle = &block[10];
#ifdef FIXED
    *middle = 7;
    free(block);
#else
    free(block);
    *middle = 7; // FINDS dangling-pointer
#endif
    return 0;
}
