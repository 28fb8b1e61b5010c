// finds: data-race
// C11 threads: a counter with and without its mtx_t.
#include "twin.h"
#include <threads.h>
static mtx_t lock;
static long counter;
static int work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        CLEAN(mtx_lock(&lock));
        counter++;
        CLEAN(mtx_unlock(&lock));
    }
    return 0;
}
int main(void)
{
    thrd_t threads[2];
    mtx_init(&lock, mtx_plain);
    for (int i = 0; i < 2; i++)
        thrd_create(&threads[i], work, NULL);
    for (int i = 0; i < 2; i++)
        thrd_join(threads[i], NULL);
    return counter == 0;
}
