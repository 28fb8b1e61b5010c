// A list that is made, sorted and freed. BUG: a node is used after it is freed, one is never freed, one has a
// field that nobody wrote, a sum overflows.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *next;
    int key, weight;
};

static struct node *push(struct node *next, int key) {
    struct node *node = malloc(sizeof *node);
    node->next = next;
    node->key = key;
#ifdef BUG
    if (key != 7)
#endif
        node->weight = key % 5;
    return node;
}

int main(int count, char **arguments) {
    struct node *list = NULL;
    int sum = 0, heavy = 0;
    (void)arguments;
    for (int i = 0; i < 20; i++)
        list = push(list, i * 7 % 20);
#ifdef BUG
    struct node *kept = malloc(sizeof *kept);
    kept->key = INT_MAX;
    sum += kept->key + count;
    kept = NULL;
#endif
    while (list) {
        struct node *next = list->next;
        if (list->weight > 2)
            heavy++;
        free(list);
#ifdef BUG
        if (next == NULL)
            sum += list->key;
#endif
        list = next;
    }
    printf("%d heavy, %d argument%s\n", heavy, count, sum == 0 ? "" : "s");
    return 0;
}
