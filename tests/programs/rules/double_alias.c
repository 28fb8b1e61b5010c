// Two owners of one block, each of which frees it.
#include <stdlib.h>

struct owner { char *name; };

static void close_owner(struct owner *owner) {
    free(owner->name); // FINDS double-free
    owner->name = NULL;
}

int main(void) {
    struct owner one = { malloc(20) };
    struct owner other = one;
#ifdef FIXED
    other.name = malloc(20);
#endif
    close_owner(&one);
    close_owner(&other);
    return 0;
}
