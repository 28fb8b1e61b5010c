// finds: data-race
// schedule: random
// A recursive mutex is taken twice; the racy one gives it back twice before it is done.
#include "twin.h"
static pthread_mutex_t lock;
static long counter;
static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        RACY(pthread_mutex_unlock(&lock));
        counter++;
        CLEAN(pthread_mutex_unlock(&lock));
    }
    return unused;
}
int main(void)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &kind);
    two(work, work);
    return counter == 0;
}
