// finds: data-race
// A writer takes a readers-writer lock for reading only.
#include "twin.h"
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static long value, sum;
static void *write_it(void *unused)
{
    for (int i = 0; i < 50; i++) {
        TWIN(pthread_rwlock_rdlock(&lock), pthread_rwlock_wrlock(&lock));
        value++;
        pthread_rwlock_unlock(&lock);
    }
    return unused;
}
static void *read_it(void *unused)
{
    for (int i = 0; i < 50; i++) {
        pthread_rwlock_rdlock(&lock);
        sum += value;
        pthread_rwlock_unlock(&lock);
    }
    return unused;
}
int main(void) { two(write_it, read_it); return sum < 0; }
