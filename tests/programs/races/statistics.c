// finds: data-race
// A statistic that may be off by a few, and nobody minds: still a race if it is not at least atomic.
#include "twin.h"
#include <stdatomic.h>
static TWIN(volatile long, _Atomic long) hits;
static void *work(void *unused)
{
    for (int i = 0; i < 50; i++)
        TWIN(hits++, atomic_fetch_add_explicit(&hits, 1, memory_order_relaxed));
    return unused;
}
int main(void) { two(work, work); return 0; }
