// realloc moves the block; the old pointer is freed all the same.
#include <stdlib.h>

int main(void) {
    char *old = malloc(24);
    char *wall = malloc(24);
    char *new = realloc(old, 4000);
#ifndef FIXED
    free(old); // FINDS double-free
#endif
    free(new);
    free(wall);
    return 0;
}
