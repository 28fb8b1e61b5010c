// What the programs of this folder share: time to pass, threads, and a verdict.
#ifndef EXPOSE_H
#define EXPOSE_H
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Work that takes a few nanoseconds a turn: it keeps what must meet apart in a native run.
__attribute__((unused)) static void work(int turns)
{
    for (volatile int turn = 0; turn < turns; turn++)
        ;
}

#define LONG 1000000

// Runs threads to their ends, each with its number.
__attribute__((unused)) static void together(int count, void *(*const runs[])(void *))
{
    pthread_t threads[8];
    for (long i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, runs[i], (void *)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}
#define TOGETHER(...) \
    do { \
        void *(*const runs[])(void *) = {__VA_ARGS__}; \
        together(sizeof runs / sizeof *runs, runs); \
    } while (0)

__attribute__((unused)) static int verdict(int is_wrong)
{
    puts(is_wrong ? "wrong" : "ok");
    return is_wrong;
}
#endif
