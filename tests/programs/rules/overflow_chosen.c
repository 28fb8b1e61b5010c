// build: -O1
// A conditional move takes one of two pointers; the access leaves the one that it took.
#include <stdlib.h>

int main(int count, char **arguments) {
    char *small = malloc(50), *large = malloc(60), *chosen = small;
    __asm__("cmp $1, %1\n\tcmove %2, %0" : "+r"(chosen) : "r"(count), "r"(large) : "cc");
#ifdef FIXED
    chosen[59] = 1;
#else
    chosen[60] = 1; // FINDS heap-overflow
#endif
    free(small);
    free(large);
    return 0;
}
