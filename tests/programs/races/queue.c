// finds: data-race
// A bounded queue; the racy one asks for its length without the lock.
#include "twin.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int items[8], length;
static void *give(void *unused)
{
    for (int i = 0; i < 40;) {
        pthread_mutex_lock(&lock);
        if (length < 8) {
            items[length++] = i++;
        }
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return unused;
}
static void *take(void *unused)
{
    for (int taken = 0; taken < 40;) {
        CLEAN(pthread_mutex_lock(&lock));
        int some = length;
        RACY(pthread_mutex_lock(&lock));
        if (some && length)
            sink(items[--length]), taken++;
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return unused;
}
int main(void) { two(give, take); return 0; }
