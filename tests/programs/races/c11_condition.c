// finds: data-race
// C11 condition variable; the racy one writes the value after it has said that it is there.
#include "twin.h"
#include <threads.h>
static mtx_t lock;
static cnd_t changed;
static int ready, value;
static int give(void *unused)
{
    (void)unused;
    CLEAN(value = 7);
    mtx_lock(&lock);
    ready = 1;
    cnd_signal(&changed);
    mtx_unlock(&lock);
    RACY(value = 7);
    return 0;
}
int main(void)
{
    thrd_t giver;
    mtx_init(&lock, mtx_plain);
    cnd_init(&changed);
    thrd_create(&giver, give, NULL);
    mtx_lock(&lock);
    while (!ready)
        cnd_wait(&changed, &lock);
    mtx_unlock(&lock);
    sink(value);
    thrd_join(giver, NULL);
    return 0;
}
