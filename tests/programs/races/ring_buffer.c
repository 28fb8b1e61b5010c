// finds: data-race
// schedule: random
// A ring between one producer and one consumer, with atomic positions or plain ones.
#include "twin.h"
#include <stdatomic.h>
static int slots[4];
static TWIN(volatile unsigned, _Atomic unsigned) head, tail;
static void *give(void *unused)
{
    for (int i = 0; i < 30;) {
        if (head - tail < 4) {
            slots[head % 4] = i++;
            TWIN(head = head + 1, atomic_store_explicit(&head, head + 1, memory_order_release));
        } else
            sched_yield();
    }
    return unused;
}
static void *take(void *unused)
{
    for (int taken = 0; taken < 30;) {
        if (TWIN(head, atomic_load_explicit(&head, memory_order_acquire)) != tail) {
            sink(slots[tail % 4]), taken++;
            TWIN(tail = tail + 1, atomic_store_explicit(&tail, tail + 1, memory_order_release));
        } else
            sched_yield();
    }
    return unused;
}
int main(void) { two(give, take); return 0; }
