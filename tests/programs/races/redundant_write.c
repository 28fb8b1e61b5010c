// finds: data-race
// All threads write the same value: benign, but for the standard and the compiler a race.
#include "twin.h"
#include <stdatomic.h>
static TWIN(volatile int, _Atomic int) found;
static int values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static void *work(void *unused)
{
    for (int i = 0; i < 8; i++)
        if (values[i] == 5)
            TWIN(found = 1, atomic_store_explicit(&found, 1, memory_order_relaxed));
    return unused;
}
int main(void) { two(work, work); return !found; }
