// depth: 2, a deadlock
// Two locks in both orders, long apart.
#include "expose.h"
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static void both(pthread_mutex_t *first, pthread_mutex_t *second)
{
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}
static void *soon(void *unused) { both(&one, &other); return unused; }
static void *late(void *unused) { work(LONG); both(&other, &one); return unused; }
int main(void) { TOGETHER(soon, late); return verdict(0); }
