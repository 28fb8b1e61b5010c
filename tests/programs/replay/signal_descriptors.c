// build: -O1
// signalfd with signals of a child and of a timer; the fields of what is read are printed.
#include "check.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>

int main(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    int descriptor = signalfd(-1, &set, SFD_CLOEXEC);
    MUST(descriptor);
    struct itimerval timer = {.it_value = {0, 1000}, .it_interval = {0, 1000}};
    MUST(setitimer(ITIMER_REAL, &timer, NULL));
    pid_t parent = getpid(), child = fork();
    MUST(child);
    if (child == 0) {
        for (int i = 0; i < 5; i++) {
            kill(parent, SIGUSR1);
            usleep(700);
        }
        _exit(7);
    }
    int alarms = 0;
    for (int ended = 0; !ended;) {
        struct signalfd_siginfo info[4];
        ssize_t got = read(descriptor, info, sizeof info);
        CHECK(got > 0 && got % (ssize_t)sizeof *info == 0);
        for (size_t i = 0; i < (size_t)got / sizeof *info; i++) {
            if (info[i].ssi_signo == SIGALRM) alarms++;
            else printf("signal %u from %u status %d after %d alarms\n", info[i].ssi_signo,
                        info[i].ssi_pid, info[i].ssi_status, alarms);
            ended |= info[i].ssi_signo == SIGCHLD;
        }
    }
    CHECK(waitpid(child, NULL, 0) == child);
    return ok();
}
