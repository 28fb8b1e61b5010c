// build: -O1 -pthread
// Real-time signals with values from several threads: queued, waited for, and delivered to whichever
// thread does not block them.
#include "check.h"
#include <pthread.h>
#include <signal.h>

static void *sender(void *argument)
{
    for (int i = 0; i < 40; i++) {
        union sigval value = {.sival_int = (int)(long)argument * 1000 + i};
        if (i % 8 == 0) usleep(50);
        while (sigqueue(getpid(), SIGRTMIN + (int)(long)argument, value) != 0) CHECK(errno == EAGAIN);
    }
    return NULL;
}

static void *receiver(void *argument)
{
    sigset_t set = *(sigset_t *)argument;
    unsigned long long trace = 0;
    int count = 0;
    for (;;) {
        siginfo_t info;
        struct timespec limit = {0, 200000000};
        int number = sigtimedwait(&set, &info, &limit);
        if (number < 0) break;
        trace = trace * 1000003 + (unsigned)info.si_value.sival_int;
        count++;
    }
    char text[80];
    int length = snprintf(text, sizeof text, "received %d trace %llx\n", count, trace);
    CHECK(write(1, text, (size_t)length) == length);
    return (void *)(long)count;
}

int main(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < 3; i++) sigaddset(&set, SIGRTMIN + i);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    pthread_t senders[3], receivers[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&receivers[i], NULL, receiver, &set) == 0);
    for (long i = 0; i < 3; i++) CHECK(pthread_create(&senders[i], NULL, sender, (void *)i) == 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(senders[i], NULL) == 0);
    long sum = 0;
    for (int i = 0; i < 2; i++) {
        void *count;
        CHECK(pthread_join(receivers[i], &count) == 0);
        sum += (long)count;
    }
    CHECK(sum == 120);
    return ok();
}
