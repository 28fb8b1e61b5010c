/* A member that nobody set. build: gcc -g -O0; class: wild-pointer,null-pointer */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { int key; struct node *next; };
static struct node *make(int key)
{
    struct node *node = malloc(sizeof *node);
    memset(node, 0x7f, sizeof *node); /* ROOT */
    node->key = key;
    return node;
}
static int sum(struct node *list)
{
    int total = 0;
    for (; list; list = list->next)
        total += list->key;
    return total;
}
int main(void)
{
    struct node *list = make(4);
    printf("%d\n", sum(list));
    return 0;
}
