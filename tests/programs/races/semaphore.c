// finds: data-race
// A value handed over by a semaphore; the racy one is posted before the value is there.
#include "twin.h"
#include <semaphore.h>
static sem_t ready;
static int value;
static void *give(void *unused)
{
    RACY(sem_post(&ready));
    value = 7;
    CLEAN(sem_post(&ready));
    return unused;
}
static void *take(void *unused) { sem_wait(&ready); sink(value); return unused; }
int main(void) { sem_init(&ready, 0, 0); two(give, take); return 0; }
