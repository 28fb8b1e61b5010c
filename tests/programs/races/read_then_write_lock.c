// finds: lost-update
// schedule: random
// No data race: a value is read under the lock for readers, and written under the one for writers later.
#include "twin.h"
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static long value;
static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        TWIN(pthread_rwlock_rdlock(&lock), pthread_rwlock_wrlock(&lock));
        long now = value;
        RACY(pthread_rwlock_unlock(&lock); sched_yield(); pthread_rwlock_wrlock(&lock));
        value = now + 1;
        pthread_rwlock_unlock(&lock);
        sched_yield();
    }
    return unused;
}
int main(void) { two(work, work); return value == 0; }
