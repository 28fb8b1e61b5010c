// finds: data-race
// A counter that two threads increment, with and without its mutex.
#include "twin.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static void *work(void *unused)
{
    for (int i = 0; i < 100; i++) {
        CLEAN(pthread_mutex_lock(&lock));
        counter++;
        CLEAN(pthread_mutex_unlock(&lock));
    }
    return unused;
}
int main(void) { two(work, work); return counter == 0; }
