// finds: data-race
// Two threads protect the same counter by two different mutexes.
#include "twin.h"
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static void add(pthread_mutex_t *lock)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(lock);
        counter++;
        pthread_mutex_unlock(lock);
    }
}
static void *first(void *unused) { add(&one); return unused; }
static void *second(void *unused) { add(TWIN(&other, &one)); return unused; }
int main(void) { two(first, second); return counter == 0; }
