// finds: data-race
// A structure is published by a pointer, plain or atomic.
#include "twin.h"
#include <stdatomic.h>
#include <stdlib.h>
struct box { int value; };
static TWIN(struct box *volatile, struct box *_Atomic) published;
static void *give(void *unused)
{
    struct box *box = malloc(sizeof *box);
    box->value = 7;
    TWIN(published = box, atomic_store_explicit(&published, box, memory_order_release));
    return unused;
}
static void *take(void *unused)
{
    struct box *box;
    for (int i = 0; i < 1000; i++) {
        box = TWIN(published, atomic_load_explicit(&published, memory_order_acquire));
        if (box) {
            sink(box->value);
            break;
        }
        sched_yield();
    }
    return unused;
}
int main(void) { two(give, take); return 0; }
