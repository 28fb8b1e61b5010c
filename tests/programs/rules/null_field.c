// Writes a field of a NULL struct: a small address, not zero.
#include <stddef.h>

struct node { long key; struct node *next, *last; };

static struct node *find(struct node *list, long key) {
    while (list && list->key != key)
        list = list->next;
    return list;
}

int main(void) {
    struct node node = { 3, NULL, NULL };
    struct node *found = find(&node, 4);
#ifdef FIXED
    if (found)
#endif
        found->last = &node; // FINDS null-pointer
    return 0;
}
