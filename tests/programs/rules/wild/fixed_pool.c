// An allocator of the program's own whose blocks all have 64 bytes, and a use of one that was given back. `pool.txt`
// of the test names it.
#include <stdlib.h>

static char room[64 * 8];
static int used;

__attribute__((noipa)) static void *node_new(void) {
    return room + 128 * used++;
}

__attribute__((noipa)) static void node_delete(void *node) {
    (void)node;
}

int main(void) {
    char *one = node_new();
    char *other = node_new();
    node_delete(one);
    one[8] = 1;
    node_delete(other);
    return 0;
}
