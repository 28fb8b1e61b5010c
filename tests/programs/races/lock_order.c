// finds: lock-order
// Two locks taken in opposite orders, by a thread and its maker.
#include "twin.h"
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static int turns;
static void both(pthread_mutex_t *first, pthread_mutex_t *second)
{
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    turns++;
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}
static void *work(void *unused) { both(TWIN(&other, &one), TWIN(&one, &other)); return unused; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    both(&one, &other);
    pthread_join(thread, NULL);
    return turns != 2;
}
