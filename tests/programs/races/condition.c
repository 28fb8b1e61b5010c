// finds: data-race
// schedule: random
// A value handed over by a condition variable; the racy one looks without the lock.
#include "twin.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready, value;
static void *give(void *unused)
{
    pthread_mutex_lock(&lock);
    value = 7;
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}
static void *take(void *unused)
{
    pthread_mutex_lock(&lock);
    RACY(pthread_mutex_unlock(&lock); sink(ready); pthread_mutex_lock(&lock));
    while (!ready)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    sink(value);
    return unused;
}
int main(void) { two(take, give); return 0; }
