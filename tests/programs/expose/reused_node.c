// depth: 3, no race
// A lock-free stack without a count: the top is taken away and put back while another thread is about to
// exchange it (ABA).
#include "expose.h"
#include <stdatomic.h>
static struct node { struct node *next; int is_used; } nodes[3];
static struct node *_Atomic top;
static int wrong;
static struct node *pop(void)
{
    struct node *own = top;
    while (own && !atomic_compare_exchange_strong(&top, &own, own->next))
        ;
    return own;
}
static void push(struct node *node)
{
    node->next = top;
    while (!atomic_compare_exchange_strong(&top, &node->next, node))
        ;
}
static void *once(void *unused) { pop(); return unused; }
static void *often(void *unused)
{
    work(LONG);
    struct node *first = pop(), *second = pop();
    if (second)
        second->is_used = 1;
    if (first)
        push(first);
    return unused;
}
int main(void)
{
    for (int i = 0; i < 3; i++)
        push(&nodes[i]);
    TOGETHER(once, often);
    for (struct node *node = top; node; node = node->next)
        wrong |= node->is_used;
    return verdict(wrong);
}
