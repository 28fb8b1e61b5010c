// finds: data-race
// schedule: random
// Whoever drops the last reference frees the block; the count is atomic, or plain.
#include "twin.h"
#include <stdatomic.h>
#include <stdlib.h>
struct shared { TWIN(volatile int, _Atomic int) count; int value; };
static struct shared *shared;
static void *work(void *unused)
{
    struct shared *own = shared;
    sink(own->value);
    sched_yield();
    if (TWIN(--own->count, atomic_fetch_sub(&own->count, 1) - 1) == 0)
        free(own);
    return unused;
}
int main(void)
{
    shared = calloc(1, sizeof *shared);
    shared->count = 2;
    two(work, work);
    return 0;
}
