/* A node is freed while it is still in the list. build: gcc -g -O0; class: use-after-free */
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; const char *name; };
static struct node *head;
static void push(const char *name)
{
    struct node *node = malloc(sizeof *node);
    node->name = name;
    node->next = head;
    head = node;
}
static void drop_first(void)
{
    free(head); /* ROOT */
}
int main(void)
{
    push("one");
    push("two");
    drop_first();
    char *noise = malloc(sizeof(struct node));
    for (unsigned i = 0; i < sizeof(struct node); i++)
        noise[i] = 0x41;
    puts(head->next->name);
    return 0;
}
