// finds: lock-order
// Three locks, each taken before the next by another thread; or all in one order.
#include "twin.h"
static pthread_mutex_t locks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *work(void *argument)
{
    int self = (int)(long)argument, next = (self + 1) % 3;
    int low = TWIN(self, self < next ? self : next), high = TWIN(next, self < next ? next : self);
    pthread_mutex_lock(&locks[low]);
    pthread_mutex_lock(&locks[high]);
    pthread_mutex_unlock(&locks[high]);
    pthread_mutex_unlock(&locks[low]);
    return NULL;
}
int main(void)
{
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
