// Reads a field of a freed struct.
#include <stdlib.h>

struct node { int key, count; };

int main(void) {
    struct node *node = malloc(sizeof *node);
    node->key = 1;
    node->count = 2;
#ifdef FIXED
    int count = node->count;
    free(node);
    return count - 2;
#else
    free(node);
    return node->count - 2; // FINDS dangling-pointer
#endif
}
