// Frees a global array.
#include <stdlib.h>

char buffer[64];

int main(void) {
    char *p = buffer;
#ifdef FIXED
    p = malloc(64);
#endif
    free(p); // FINDS unmatched-free
    return 0;
}
