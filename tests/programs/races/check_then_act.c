// finds: lost-update
// schedule: random
// No data race: a seat is looked at in one critical section and taken in the next.
#include "twin.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int seats[32];
static void *work(void *name)
{
    for (int i = 0; i < 32; i++) {
        pthread_mutex_lock(&lock);
        int is_free = seats[i] == 0;
        RACY(pthread_mutex_unlock(&lock); sched_yield(); pthread_mutex_lock(&lock));
        if (is_free)
            seats[i] = (int)(long)name;
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return NULL;
}
int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
