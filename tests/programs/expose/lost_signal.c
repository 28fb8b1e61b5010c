// depth: 1, no race
// The signal may come before the wait: nothing remembers that it was given.
#include "expose.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *wait_for_it(void *unused)
{
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return unused;
}
static void *signal_it(void *unused)
{
    work(8 * LONG);
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) { TOGETHER(wait_for_it, signal_it); return verdict(0); }
