// finds: lost-update
// schedule: random
// No data race: what was read in one critical section is written back in the next.
#include "twin.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long value;
static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        long now = value;
        RACY(pthread_mutex_unlock(&lock); sched_yield(); pthread_mutex_lock(&lock));
        value = now + 1;
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return unused;
}
int main(void) { two(work, work); return value == 0; }
