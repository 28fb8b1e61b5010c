// finds: data-race
// schedule: random
// A semaphore as a lock: with one permit it protects, with two it does not.
#include "twin.h"
#include <semaphore.h>
static sem_t permits;
static long counter;
static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        sem_wait(&permits);
        counter++;
        sched_yield();
        sem_post(&permits);
    }
    return unused;
}
int main(void)
{
    sem_init(&permits, 0, TWIN(2, 1));
    two(work, work);
    return counter == 0;
}
