// finds: data-race
// A thread uses what its maker fills in only after it has made the thread.
#include "twin.h"
static int table[4];
static void *use(void *unused) { sink(table[2]); return unused; }
int main(void)
{
    pthread_t thread;
    CLEAN(table[2] = 7);
    pthread_create(&thread, NULL, use, NULL);
    RACY(table[2] = 7);
    pthread_join(thread, NULL);
    return 0;
}
