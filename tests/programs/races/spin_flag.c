// finds: data-race
// A hand-made spin lock: exchange in a loop, or looking and then setting.
#include "twin.h"
#include <stdatomic.h>
static TWIN(volatile int, _Atomic int) taken;
static long counter;
static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        TWIN(while (taken) sched_yield(); taken = 1, while (atomic_exchange(&taken, 1)) sched_yield());
        counter++;
        taken = 0;
    }
    return unused;
}
int main(void) { two(work, work); return counter == 0; }
