// build: -O2 -pthread
// build: -O0 -pthread -static
// Lock-free spinning: a ticket lock without a system call, a stack of compare-and-swap, threads that
// spin on a flag. How often each had to try again is printed.
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

struct node { struct node *next; int owner; };
static _Atomic(struct node *) top;
static atomic_uint next_ticket, now_serving;
static atomic_int go;
static unsigned long long order;
static long retries[3], spins[3];
static struct node nodes[3][200];

static void *work(void *argument)
{
    int self = (int)(long)argument;
    while (!atomic_load(&go)) spins[self]++;
    for (int i = 0; i < 200; i++) {
        struct node *node = &nodes[self][i];
        node->owner = self;
        node->next = atomic_load(&top);
        while (!atomic_compare_exchange_weak(&top, &node->next, node)) retries[self]++;
        unsigned ticket = atomic_fetch_add(&next_ticket, 1);
        while (atomic_load(&now_serving) != ticket) retries[self]++;
        order = order * 31 + (unsigned)self + 1;
        atomic_store(&now_serving, ticket + 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    atomic_store(&go, 1);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    unsigned long long stack = 0;
    int count = 0;
    for (struct node *node = top; node; node = node->next, count++) stack = stack * 31 + (unsigned)node->owner;
    CHECK(count == 600);
    for (int i = 0; i < 3; i++) printf("thread %d retries %ld spins %ld\n", i, retries[i], spins[i]);
    printf("order %llx stack %llx\n", order, stack);
    return ok();
}
