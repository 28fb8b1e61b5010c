// A struct is copied with a field that nothing wrote; only its later use is wrong.
#include <stdio.h>
#include <stdlib.h>

struct options { long verbose, level; };

int main(void) {
    struct options *one = malloc(sizeof *one), two;
    one->level = 3;
#ifdef FIXED
    one->verbose = 0;
#endif
    two = *one;
    if (two.level == 3)
        puts("level");
    if (two.verbose) // FINDS uninitialised-read
        puts("verbose");
    free(one);
    return 0;
}
