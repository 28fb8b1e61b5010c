// depth: 1, no race
// A result that comes when the timed wait is over is dropped.
#include "expose.h"
#include <time.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int result;
static void *compute(void *unused)
{
    work(LONG);
    pthread_mutex_lock(&lock);
    result = 7;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void)
{
    pthread_t thread;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    pthread_create(&thread, NULL, compute, NULL);
    pthread_mutex_lock(&lock);
    int late = 0;
    while (!result && !late)
        late = pthread_cond_timedwait(&changed, &lock, &until);
    int seen = result;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return verdict(seen != 7);
}
