// finds: data-race
// A ticket lock of two atomic numbers; the racy one does not wait for its turn.
#include "twin.h"
#include <stdatomic.h>
static _Atomic unsigned next_ticket, now_serving;
static long counter;
static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        unsigned own = atomic_fetch_add(&next_ticket, 1);
        CLEAN(while (now_serving != own) sched_yield());
        counter++;
        now_serving = own + 1;
    }
    return unused;
}
int main(void) { two(work, work); return counter == 0; }
