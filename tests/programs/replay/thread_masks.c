// build: -O1 -pthread
// Signals to a process with several threads: who takes them depends on masks and moments;
// pthread_kill and raise beside them, and a thread that is cancelled while it waits.
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static atomic_int taken[3], stop;
static _Thread_local int self = -1;

static void note(int number)
{
    (void)number;
    if (self >= 0) atomic_fetch_add(&taken[self], 1);
}

static void *work(void *argument)
{
    self = (int)(long)argument;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    while (!atomic_load(&stop)) {
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        for (volatile int i = 0; i < 300 * (self + 1); i++) {}
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        if (atomic_load(&taken[self]) % 5 == 4) raise(SIGUSR2);
    }
    return NULL;
}

static void *sleeper(void *unused)
{
    for (;;) pause();
    return unused;
}

int main(void)
{
    struct sigaction action = {.sa_handler = note};
    MUST(sigaction(SIGUSR1, &action, NULL));
    MUST(sigaction(SIGUSR2, &action, NULL));
    pthread_t threads[3], waiting;
    for (long i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    CHECK(pthread_create(&waiting, NULL, sleeper, NULL) == 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 60; i++) {
        if (i % 3) MUST(kill(getpid(), SIGUSR1));
        else CHECK(pthread_kill(threads[i % 9 / 3], SIGUSR1) == 0);
        usleep(100);
    }
    CHECK(pthread_cancel(waiting) == 0);
    void *result;
    CHECK(pthread_join(waiting, &result) == 0 && result == PTHREAD_CANCELED);
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("taken %d %d %d\n", taken[0], taken[1], taken[2]);
    return ok();
}
