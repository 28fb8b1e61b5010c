// A small block is taken for a larger struct.
#include <stdlib.h>

struct small { int kind; };
struct large { int kind; long more[4]; };

static void set(void *object) {
    struct large *large = object;
    large->more[2] = 1; // FINDS heap-overflow
}

int main(void) {
#ifdef FIXED
    void *object = malloc(sizeof(struct large));
#else
    void *object = malloc(sizeof(struct small));
#endif
    set(object);
    free(object);
    return 0;
}
