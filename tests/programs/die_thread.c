// build: -O0 -pthread
// exit: SIGSEGV
// A thread that is not the leader dies of a wild write while others wait, run and hold locks: the
// whole process dies of it, and the report is of that thread.
#include "check.h"
#include <pthread.h>
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static void *waits(void *a) { pthread_mutex_lock(&held); return a; }
static void *spins(void *a) { for (volatile long i = 0;; i++) {} return a; }
static void *crashes(void *a) { usleep(5000); *(volatile int *)0xdead0 = 1; return a; }
int main(void)
{
    pthread_t t;
    fputs("before\n", stderr);
    pthread_mutex_lock(&held);
    pthread_create(&t, NULL, waits, NULL);
    pthread_create(&t, NULL, spins, NULL);
    pthread_create(&t, NULL, crashes, NULL);
    pthread_join(t, NULL);
    return 0;
}
