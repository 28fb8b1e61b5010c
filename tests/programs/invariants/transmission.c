// Order: one thread gives a first value, another the right one; a third takes it that both have.
// build: -pthread
// learn: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12
// fail: 4000
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static int *bandwidth;
static int work, seen;

static void *allocate(void *unused) {
    (void)unused;
    for (volatile int at = 0; at < work; at++)
        sched_yield();
    *bandwidth = 100;
    return NULL;
}

static void *use(void *unused) {
    (void)unused;
    for (int at = 0; at < 300; at++)
        sched_yield();
    seen = *bandwidth; // FAULT: has it been given?
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t one, two;
    work = atoi(argv[1]);
    bandwidth = malloc(sizeof *bandwidth);
    *bandwidth = 0;
    pthread_create(&one, NULL, allocate, NULL);
    pthread_create(&two, NULL, use, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", seen);
    return seen != 100 || argc != 2;
}
