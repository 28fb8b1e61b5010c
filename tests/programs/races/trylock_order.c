// finds: lock-order
// Whoever takes the locks the other way round only tries the second, and steps back; or does not.
#include "twin.h"
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static void *forth(void *unused)
{
    pthread_mutex_lock(&one);
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    pthread_mutex_unlock(&one);
    return unused;
}
static void *back(void *unused)
{
    pthread_mutex_lock(&other);
    if (TWIN(pthread_mutex_lock(&one), pthread_mutex_trylock(&one)) == 0)
        pthread_mutex_unlock(&one);
    pthread_mutex_unlock(&other);
    return unused;
}
int main(void) { two(forth, back); return 0; }
