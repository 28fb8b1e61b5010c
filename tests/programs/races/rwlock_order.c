// finds: lock-order
// Two readers-writer locks, written in both orders, or in one.
#include "twin.h"
static pthread_rwlock_t one = PTHREAD_RWLOCK_INITIALIZER, other = PTHREAD_RWLOCK_INITIALIZER;
static void both(pthread_rwlock_t *first, pthread_rwlock_t *second)
{
    pthread_rwlock_wrlock(first);
    pthread_rwlock_wrlock(second);
    pthread_rwlock_unlock(second);
    pthread_rwlock_unlock(first);
}
static void *forth(void *unused) { both(&one, &other); return unused; }
static void *back(void *unused) { both(TWIN(&other, &one), TWIN(&one, &other)); return unused; }
int main(void) { two(forth, back); return 0; }
