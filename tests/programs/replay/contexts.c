// build: -O1
// makecontext and swapcontext; a timer decides when the running one gives way.
#include "check.h"
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

static ucontext_t back, contexts[3];
static volatile int tick;
static unsigned long progress[3], switches;

static void on_alarm(int number)
{
    (void)number;
    tick = 1;
}

static void work(int self)
{
    for (;;) {
        progress[self]++;
        if (tick) {
            tick = 0;
            swapcontext(&contexts[self], &back);
        }
    }
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval timer = {.it_value = {0, 800}, .it_interval = {0, 800}};
    MUST(sigaction(SIGALRM, &action, NULL));
    for (int i = 0; i < 3; i++) {
        MUST(getcontext(&contexts[i]));
        contexts[i].uc_stack.ss_sp = malloc(65536);
        contexts[i].uc_stack.ss_size = 65536;
        contexts[i].uc_link = &back;
        makecontext(&contexts[i], (void (*)(void))work, 1, i);
    }
    MUST(setitimer(ITIMER_REAL, &timer, NULL));
    for (; switches < 12; switches++) MUST(swapcontext(&back, &contexts[switches % 3]));
    for (int i = 0; i < 3; i++) printf("context %d came to %lu\n", i, progress[i]);
    return ok();
}
