// Atomicity: a count is taken down and then looked at; another thread takes it down in between, and both clean up.
// build: -pthread
// learn: 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0
// fail: 50
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static int refcount;
static int cleanups;

static void take_down(void) {
    __atomic_fetch_sub(&refcount, 1, __ATOMIC_SEQ_CST);
}

static void *release(void *pause_for) {
    take_down();
    for (int at = 0; at < *(int *)pause_for; at++)
        sched_yield();
    if (refcount == 0) // FAULT: another thread's value
        cleanups++;
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t one, two;
    int pause_for = atoi(argv[1]);
    for (int round = 0; round < 4; round++) {
        refcount = 2;
        cleanups = 0;
        pthread_create(&one, NULL, release, &pause_for);
        if (pause_for == 0)
            pthread_join(one, NULL);
        pthread_create(&two, NULL, release, &pause_for);
        if (pause_for != 0)
            pthread_join(one, NULL);
        pthread_join(two, NULL);
    }
    printf("%d cleanups\n", cleanups);
    return cleanups != 1 || argc != 2;
}
