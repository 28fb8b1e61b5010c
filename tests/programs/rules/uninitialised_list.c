// The last node of a list does not say that it is the last.
#include <stdio.h>
#include <stdlib.h>

struct node { int value; struct node *next; };

static struct node *push(struct node *list, int value) {
    struct node *node = malloc(sizeof *node);
    node->value = value;
    if (list)
        node->next = list;
#ifdef FIXED
    else
        node->next = NULL;
#endif
    return node;
}

int main(void) {
    struct node *list = push(push(NULL, 1), 2);
    struct node *next = list->next;
    if (next->next) // FINDS uninitialised-read
        puts("more");
    free(next);
    free(list);
    return 0;
}
