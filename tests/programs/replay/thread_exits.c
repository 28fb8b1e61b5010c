// build: -O1 -pthread
// Threads come and go while others run, detached and joined; main leaves first and the last one ends
// the process.
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static atomic_int alive, born;
static atomic_ullong trace;

static void *brief(void *argument)
{
    int self = atomic_fetch_add(&born, 1);
    atomic_fetch_add(&trace, (unsigned long long)(self + 1) * (unsigned)atomic_load(&alive));
    for (volatile int i = 0; i < (int)(long)argument * 100; i++) {}
    if (self < 30) {
        pthread_t next;
        CHECK(pthread_create(&next, NULL, brief, (void *)(long)(self % 7)) == 0);
        if (self % 3) CHECK(pthread_detach(next) == 0);
        else CHECK(pthread_join(next, NULL) == 0);
    }
    atomic_fetch_sub(&alive, 1);
    return NULL;
}

static void *last(void *unused)
{
    (void)unused;
    while (atomic_load(&alive) != 0) usleep(100);
    printf("born %d trace %llu, I am %ld of %d\n", born, trace, syscall(SYS_gettid), getpid());
    exit(ok());
}

int main(void)
{
    pthread_t thread;
    atomic_store(&alive, 5 + 30);
    for (long i = 0; i < 5; i++) {
        CHECK(pthread_create(&thread, NULL, brief, (void *)i) == 0);
        CHECK(pthread_detach(thread) == 0);
    }
    CHECK(pthread_create(&thread, NULL, last, NULL) == 0);
    pthread_exit(NULL);
}
