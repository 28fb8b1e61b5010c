// build: -O1
// Three kinds of timers at once: setitimer, timer_create with a signal, timerfd. How far a busy loop
// came before each expiry is printed.
#include "check.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

static volatile unsigned long progress;
static volatile int fired[2];
static volatile unsigned long when[2][8];

static void note(int number)
{
    int which = number == SIGALRM ? 0 : 1;
    if (fired[which] < 8) when[which][fired[which]] = progress;
    fired[which]++;
}

int main(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL));
    MUST(sigaction(SIGRTMIN + 2, &action, NULL));
    struct itimerval interval = {.it_value = {0, 1300}, .it_interval = {0, 1300}};
    MUST(setitimer(ITIMER_REAL, &interval, NULL));
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2};
    struct itimerspec every = {.it_value = {0, 900000}, .it_interval = {0, 900000}};
    timer_t timer;
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer));
    MUST(timer_settime(timer, 0, &every, NULL));
    int descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    MUST(descriptor);
    MUST(timerfd_settime(descriptor, 0, &every, NULL));
    unsigned long long expiries = 0;
    for (int rounds = 0; fired[0] < 8 || fired[1] < 8 || expiries < 8; rounds++) {
        uint64_t count;
        for (int i = 0; i < 2000; i++) progress = progress + 1;
        if (read(descriptor, &count, sizeof count) == sizeof count) {
            expiries += count;
            printf("timerfd %llu at %lu\n", (unsigned long long)count, progress);
        } else CHECK(errno == EAGAIN);
    }
    MUST(timer_delete(timer));
    for (int i = 0; i < 8; i++) printf("%lu %lu\n", when[0][i], when[1][i]);
    return ok();
}
