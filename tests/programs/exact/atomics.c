/* build: -O2 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie
 * C11 atomics of all sizes, a lock, a lock-free stack, fences. */
#include "start.h"
#include <stdatomic.h>

static atomic_char small;
static atomic_int middle;
static atomic_long large;
static atomic_flag locked = ATOMIC_FLAG_INIT;
struct node { struct node *next; int value; };
static struct node nodes[20];
static _Atomic(struct node *) top;

static void push(struct node *node) {
    node->next = atomic_load(&top);
    while (!atomic_compare_exchange_weak(&top, &node->next, node)) {}
}

static struct node *pop(void) {
    struct node *node = atomic_load(&top);
    while (node && !atomic_compare_exchange_weak(&top, &node, node->next)) {}
    return node;
}

int main(void) {
    for (int i = 0; i < 20; i++) {
        nodes[i].value = i;
        push(&nodes[i]);
        atomic_fetch_add(&small, 3);
        atomic_fetch_or(&middle, i);
        atomic_exchange(&large, large + i);
        while (atomic_flag_test_and_set(&locked)) {}
        atomic_thread_fence(memory_order_seq_cst);
        atomic_flag_clear(&locked);
    }
    int sum = 0;
    for (struct node *node; (node = pop());) sum += node->value * node->value;
    return (sum + small + middle + (int)large) & 127;
}
