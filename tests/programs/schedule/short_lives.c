// build: -O1 -pthread
// Threads that make threads: who ends first, and in whose place the next one runs.
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_ullong order;

static void *live(void *argument)
{
    long depth = (long)argument;
    pthread_t children[2];
    int count = depth > 0 ? 2 : 0;
    for (int i = 0; i < count; i++) CHECK(pthread_create(&children[i], NULL, live, (void *)(depth - 1)) == 0);
    for (volatile long i = 0; i < 400 * (depth + 1); i++) {}
    unsigned long long before = atomic_load(&order);
    atomic_store(&order, before * 31 + (unsigned)depth + 1);
    for (int i = count; i-- > 0;) CHECK(pthread_join(children[i], NULL) == 0);
    return NULL;
}

int main(void)
{
    for (int round = 0; round < 3; round++) live((void *)4);
    printf("order %llx\n", (unsigned long long)order);
    return ok();
}
