// The pointer itself is moved into another live block and used there later: no instruction adds anything to it
// where it is used.
// build: -O2
#include <stdlib.h>

__attribute__((noipa)) static void put(char *at) {
    *at = 1; // FINDS heap-overflow
}

__attribute__((noipa)) static char *move(char *from, long by) {
    return from + by;
}

int main(void) {
    char *one = malloc(1000);
    char *other = malloc(1000);
#ifdef FIXED
    put(move(one, 500));
#else
    put(move(one, 1508));
#endif
    free(one);
    free(other);
    return 0;
}
