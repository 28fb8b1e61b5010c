// build: -O1 -pthread
// A data race with lost updates: which increments survive depends on where threads are switched.
#include "check.h"
#include <pthread.h>
#include <sched.h>

static volatile long counter;
static volatile int last[4];

static void *add(void *argument)
{
    int self = (int)(long)argument;
    for (int i = 0; i < 300000; i++) {
        long seen = counter;
        if (i % 4096 == self) sched_yield();
        counter = seen + 1;
        last[(self + i) % 4] = self;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, add, (void *)i) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("counter %ld last %d%d%d%d\n", counter, last[0], last[1], last[2], last[3]);
    CHECK(counter > 0 && counter <= 1200000);
    return ok();
}
