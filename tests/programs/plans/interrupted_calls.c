// Calls of `work` from several places, and from a handler that a timer runs again and again: every call
// has one entry and one return, wherever a signal comes. The last call tells how many there were.
#include <signal.h>
#include <sys/time.h>

enum { ENOUGH = 5, FROM_HANDLER = 7 };

static volatile sig_atomic_t alarms;
static volatile long sum;

__attribute__((noinline)) long work(long n)
{
    __asm__ volatile("");
    return n * 3 + 1;
}

static void on_alarm(int signal)
{
    (void)signal;
    alarms++;
    sum += work(FROM_HANDLER);
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGPROF, &action, 0);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &often, 0);
    long count = 0;
    while (alarms < ENOUGH) {
        sum += work(1000 + count++);
        if (count & 1)
            sum ^= work(1000 + count++);
        for (int i = 0; i < 3; i++)
            sum -= work(1000 + count++);
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &never, 0);
    return work(-count) == 0 ? 1 : 8;
}
