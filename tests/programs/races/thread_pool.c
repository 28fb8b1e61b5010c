// finds: data-race
// schedule: random
// Workers take jobs from a list; results are added up under the lock or outside of it.
#include "twin.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int jobs, closed;
static long result;
static void *work(void *unused)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!jobs && !closed)
            pthread_cond_wait(&changed, &lock);
        if (!jobs)
            break;
        int job = jobs--;
        RACY(pthread_mutex_unlock(&lock));
        result += job;
        CLEAN(pthread_mutex_unlock(&lock));
        sched_yield();
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        jobs++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    pthread_mutex_lock(&lock);
    closed = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return result == 0;
}
