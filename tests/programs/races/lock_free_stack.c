// finds: data-race
// schedule: random
// A stack that is pushed to by compare and exchange, or by plain stores.
#include "twin.h"
#include <stdatomic.h>
#include <stdlib.h>
struct node { struct node *next; int value; };
static TWIN(struct node *volatile, struct node *_Atomic) top;
static void push(int value)
{
    struct node *node = malloc(sizeof *node);
    node->value = value;
    node->next = top;
    TWIN(top = node, while (!atomic_compare_exchange_weak(&top, &node->next, node)));
}
static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        push(i);
        sched_yield();
    }
    return unused;
}
int main(void)
{
    two(work, work);
    for (struct node *node = top; node; node = node->next)
        sink(node->value);
    return 0;
}
