// build: -O1 -pthread
// Threads that sleep for nearly the same time: who wakes first, and how late everyone was.
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int turn;
static int place[6];
static long late[6];

static void *sleeper(void *argument)
{
    int self = (int)(long)argument;
    for (int round = 0; round < 5; round++) {
        struct timespec nap = {0, 1000000 + self % 3}, before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL) == 0);
        clock_gettime(CLOCK_MONOTONIC, &after);
        long took = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
        late[self] += took - nap.tv_nsec;
        place[self] = place[self] * 40 + atomic_fetch_add(&turn, 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[6];
    for (long i = 0; i < 6; i++) CHECK(pthread_create(&threads[i], NULL, sleeper, (void *)i) == 0);
    for (int i = 0; i < 6; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 6; i++) printf("thread %d places %x late %ld\n", i, place[i], late[i]);
    return ok();
}
