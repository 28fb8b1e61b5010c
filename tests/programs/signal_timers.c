// build: -O1 -pthread
// Timer storms while computing: setitimer (real, virtual, profiling) and timer_create with signals
// and threads. The computation must come out right though it is interrupted many times.
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
static volatile sig_atomic_t real, virtual_, profile, posix_;
static volatile int threads;
static void handler(int s)
{
    double noise = 1.0;                      /* the handler disturbs xmm and x87 state */
    for (int i = 1; i < 10; i++) noise = noise * i + 0.5;
    long double extended = noise;
    __asm__ volatile("" ::"m"(extended));
    if (s == SIGALRM) real++;
    if (s == SIGVTALRM) virtual_++;
    if (s == SIGPROF) profile++;
    if (s == SIGRTMIN) posix_++;
}
static void on_thread(union sigval v) { __atomic_add_fetch((int *)v.sival_ptr, 1, __ATOMIC_SEQ_CST); }
static uint64_t work(uint64_t x, double *f, long double *e)
{
    for (int i = 0; i < 200000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        *f = *f * 0.999 + (double)(x & 1023);
        *e = *e / 1.0001L + (x & 7);
    }
    return x;
}
int main(void)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    int all[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGRTMIN};
    for (int i = 0; i < 4; i++) sigaction(all[i], &act, NULL);
    struct itimerval every = {{0, 1000}, {0, 1000}}, stop = {0};
    setitimer(ITIMER_REAL, &every, NULL);
    setitimer(ITIMER_VIRTUAL, &every, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    timer_t timer, notify;
    struct sigevent by_signal = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct sigevent by_thread = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_thread};
    by_thread.sigev_value.sival_ptr = (void *)&threads;
    MUST(timer_create(CLOCK_MONOTONIC, &by_signal, &timer));
    MUST(timer_create(CLOCK_MONOTONIC, &by_thread, &notify));
    struct itimerspec fast = {{0, 700000}, {0, 700000}};
    MUST(timer_settime(timer, 0, &fast, NULL));
    struct itimerspec slower = {{0, 5000000}, {0, 5000000}};
    MUST(timer_settime(notify, 0, &slower, NULL));
    uint64_t x = 88172645463325252;
    double f = 0;
    long double e = 0;
    int rounds = 0;
    uint64_t first = 0;
    while (real < 20 || virtual_ < 5 || profile < 5 || posix_ < 20 || threads < 3 || rounds < 10) {
        x = 88172645463325252, f = 0, e = 0;
        uint64_t now = work(x, &f, &e);
        if (!first) first = now;
        CHECK(now == first);
        rounds++;
    }
    setitimer(ITIMER_REAL, &stop, NULL);
    setitimer(ITIMER_VIRTUAL, &stop, NULL);
    setitimer(ITIMER_PROF, &stop, NULL);
    timer_delete(timer), timer_delete(notify);
    printf("%016lx %.10f %.12Lf\n", first, f, e);
    return ok();
}
