// Order: the program takes it that the thread it has made has set the options before it looks at them.
// build: -pthread
// learn: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12
// fail: 4000
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct options {
    int depth;
};

static struct options *global_options;
static int work;

static void *engine(void *unused) {
    (void)unused;
    volatile int done = 0;
    for (int at = 0; at < work; at++) {
        done++;
        sched_yield();
    }
    struct options *fresh = malloc(sizeof *fresh);
    fresh->depth = work;
    global_options = fresh;
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    work = atoi(argv[1]);
    global_options = NULL;
    pthread_create(&thread, NULL, engine, NULL);
    for (int at = 0; at < 300; at++)
        sched_yield();
    struct options *options = global_options; // FAULT: has it been set?
    int depth = options ? options->depth : -1;
    pthread_join(thread, NULL);
    printf("%d\n", depth);
    return depth < 0 || argc != 2;
}
