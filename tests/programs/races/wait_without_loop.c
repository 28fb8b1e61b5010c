// finds: wait-without-loop
// schedule: random
// A condition is waited for with `if`: whoever is woken too early, or late, takes what is not there.
#include "twin.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready, value;
static void *give(void *unused)
{
    sched_yield();
    pthread_mutex_lock(&lock);
    ready = 1;
    value = 7;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}
static void *take(void *unused)
{
    pthread_mutex_lock(&lock);
    TWIN(if, while) (!ready)
        pthread_cond_wait(&changed, &lock);
    sink(value);
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) { two(take, give); return 0; }
