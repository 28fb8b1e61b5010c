// finds: lock-order
// Two locks in both orders; a third one around both keeps them apart, or does not.
#include "twin.h"
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, one = PTHREAD_MUTEX_INITIALIZER,
                       other = PTHREAD_MUTEX_INITIALIZER;
static void both(pthread_mutex_t *first, pthread_mutex_t *second)
{
    CLEAN(pthread_mutex_lock(&gate));
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
    CLEAN(pthread_mutex_unlock(&gate));
}
static void *forth(void *unused) { both(&one, &other); return unused; }
static void *back(void *unused) { both(&other, &one); return unused; }
int main(void) { two(forth, back); return 0; }
