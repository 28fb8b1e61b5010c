// depth: 2, no race
// A condition is waited for with `if`: a third thread takes the item before the woken one gets the lock.
#include "expose.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int items, wrong;
static void *take(void *unused)
{
    pthread_mutex_lock(&lock);
    if (items == 0)
        pthread_cond_wait(&changed, &lock);
    items--;
    wrong |= items < 0;
    pthread_mutex_unlock(&lock);
    return unused;
}
static void *give(void *unused)
{
    work(4 * LONG);
    pthread_mutex_lock(&lock);
    items++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}
static void *steal(void *unused)
{
    work(8 * LONG);
    pthread_mutex_lock(&lock);
    if (items > 0)
        items--;
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) { TOGETHER(take, give, steal); return verdict(wrong); }
