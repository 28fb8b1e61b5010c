// build: -O1
// siglongjmp out of the handler of a timer, out of a loop that makes no system call.
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf back;
static volatile unsigned long progress;

static void leave(int number)
{
    siglongjmp(back, number);
}

int main(void)
{
    struct sigaction action = {.sa_handler = leave};
    MUST(sigaction(SIGALRM, &action, NULL));
    for (volatile int round = 0; round < 8; round++) {
        struct itimerval soon = {.it_value = {0, 2000 + round * 500}};
        progress = 0;
        if (sigsetjmp(back, 1) == 0) {
            MUST(setitimer(ITIMER_REAL, &soon, NULL));
            for (;;) progress = progress + 1;
        }
        printf("round %d left at %lu\n", round, progress);
    }
    return ok();
}
