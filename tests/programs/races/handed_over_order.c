// finds: lock-order
// Two locks in both orders; the second thread is made only when the first is done, or at once.
#include "twin.h"
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static void both(pthread_mutex_t *first, pthread_mutex_t *second)
{
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}
static void *forth(void *unused) { both(&one, &other); return unused; }
static void *back(void *unused) { both(&other, &one); return unused; }
int main(void)
{
    TWIN(two(forth, back), two(forth, forth); two(back, back));
    return 0;
}
