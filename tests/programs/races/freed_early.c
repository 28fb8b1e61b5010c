// finds: data-race
// A block is freed while another thread may still read it.
#include "twin.h"
#include <stdlib.h>
static int *block;
static void *use(void *unused) { sink(block[1]); return unused; }
int main(void)
{
    pthread_t thread;
    block = calloc(4, sizeof *block);
    pthread_create(&thread, NULL, use, NULL);
    RACY(sched_yield(); free(block));
    pthread_join(thread, NULL);
    CLEAN(free(block));
    return 0;
}
