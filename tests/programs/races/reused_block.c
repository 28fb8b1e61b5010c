// finds: data-race
// Blocks that one thread frees and another gets: no race, unless the pointer is used after the free.
#include "twin.h"
#include <stdlib.h>
static int *volatile last;
static void *work(void *unused)
{
    for (int i = 0; i < 30; i++) {
        int *block = malloc(24);
        block[0] = i;
        RACY(if (last) last[1] = i; last = block);
        sink(block[0]);
        free(block);
        sched_yield();
    }
    return unused;
}
int main(void) { two(work, work); return 0; }
