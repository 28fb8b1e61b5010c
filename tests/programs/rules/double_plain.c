// Frees a block twice in a row.
#include <stdlib.h>

int main(void) {
    char *p = malloc(100);
    free(p);
#ifndef FIXED
    free(p); // FINDS double-free
#endif
    return 0;
}
