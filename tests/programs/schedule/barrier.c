// build: -O1 -pthread
// Rounds of work between barriers, with a readers-writer lock and a race in between.
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 60 };
static pthread_barrier_t barrier;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile unsigned long racy;
static unsigned long long order;

static void *work(void *argument)
{
    unsigned self = (unsigned)(long)argument + 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 500 * self; i++) racy = racy + 1;
        pthread_rwlock_rdlock(&lock);
        unsigned long long seen = order;
        pthread_rwlock_unlock(&lock);
        pthread_rwlock_wrlock(&lock);
        order = (order ^ seen) * 31 + self;
        pthread_rwlock_unlock(&lock);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (long i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("order %llx racy %lu\n", order, racy);
    return ok();
}
