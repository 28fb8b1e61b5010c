// finds: data-race
// A lock that could not be had is ignored.
#include "twin.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static void *work(void *unused)
{
    for (int i = 0; i < 200; i++) {
        int had = pthread_mutex_trylock(&lock) == 0;
        if (TWIN(1, had))
            counter++;
        sched_yield();
        if (had)
            pthread_mutex_unlock(&lock);
    }
    return unused;
}
int main(void) { two(work, work); return counter == 0; }
