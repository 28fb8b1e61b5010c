// Each program of this folder is two: with -DIS_CLEAN it has no bug, without it has the one that its
// first line names. What only one of them does stands in RACY or CLEAN, what both do differently in TWIN.
#ifndef TWIN_H
#define TWIN_H
#include <pthread.h>
#include <sched.h>
#include <stddef.h>

#ifdef IS_CLEAN
#define RACY(...)
#define CLEAN(...) __VA_ARGS__
#define TWIN(racy, ...) __VA_ARGS__
#else
#define RACY(...) __VA_ARGS__
#define CLEAN(...)
#define TWIN(racy, ...) racy
#endif

// Takes a value, so that reading it is not optimised away.
static inline void sink(int value) { __asm__ volatile("" : : "r"(value)); }

// Runs two threads to their ends.
__attribute__((unused)) static void two(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}
#endif
