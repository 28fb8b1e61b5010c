// finds: torn-pair
// schedule: random
// No data race: two variables that belong together are changed in two critical sections, and read in one.
#include "twin.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long length, sum;
static void *change(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        length++;
        RACY(pthread_mutex_unlock(&lock); sched_yield(); pthread_mutex_lock(&lock));
        sum += 8;
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return unused;
}
static void *look(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        sink((int)(sum - length * 8));
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return unused;
}
int main(void) { two(change, look); return 0; }
