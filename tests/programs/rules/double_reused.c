// A stale pointer frees the block that has taken the place of its own.
#include <stdlib.h>

int main(void) {
    char *old = malloc(40);
    free(old);
    char *new = malloc(40);
#ifndef FIXED
    free(old); // FINDS double-free
#endif
    free(new); // FINDS double-free
    return 0;
}
