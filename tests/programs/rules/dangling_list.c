// Frees a list and asks each freed element for the next.
#include <stdlib.h>

struct node { struct node *next; };

int main(void) {
    struct node *head = NULL;
    for (int i = 0; i < 5; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = head;
        head = node;
    }
#ifdef FIXED
    while (head) {
        struct node *next = head->next;
        free(head);
        head = next;
    }
#else
    struct node *node = head;
    free(node);
    node = node->next; // FINDS dangling-pointer
#endif
    return 0;
}
