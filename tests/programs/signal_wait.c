// build: -O1
// Signals taken without a handler: sigwait, sigtimedwait, sigwaitinfo, signalfd, sigsuspend; real-time
// signals queue in order, lowest number first, with their values.
#include "check.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
static volatile int handled;
static void handler(int s) { handled = s; }
int main(void)
{
    sigset_t set, one;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2);
    for (int i = 0; i < 4; i++) sigaddset(&set, SIGRTMIN + i);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    raise(SIGUSR1);
    int got;
    CHECK(sigwait(&set, &got) == 0 && got == SIGUSR1);
    struct timespec none = {0, 0}, brief = {0, 1000000};
    siginfo_t info;
    CHECK(sigtimedwait(&set, &info, &none) == -1 && errno == EAGAIN);
    CHECK(sigtimedwait(&set, &info, &brief) == -1 && errno == EAGAIN);
    for (int i = 0; i < 8; i++) {
        union sigval value = {.sival_int = i};
        MUST(sigqueue(getpid(), SIGRTMIN + 3 - i % 4, value));
    }
    for (int i = 0; i < 8; i++) {
        CHECK(sigwaitinfo(&set, &info) > 0);
        printf("rt %d value %d code %d\n", info.si_signo - SIGRTMIN, info.si_value.sival_int, info.si_code);
    }
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    struct signalfd_siginfo from;
    CHECK(fd >= 0 && read(fd, &from, sizeof from) == -1 && errno == EAGAIN);
    raise(SIGUSR2);
    CHECK(read(fd, &from, sizeof from) == sizeof from);
    CHECK(from.ssi_signo == SIGUSR2 && from.ssi_pid == (unsigned)getpid());
    struct sigaction act = {.sa_handler = handler};
    sigaction(SIGUSR1, &act, NULL);
    raise(SIGUSR1);
    CHECK(handled == 0);
    sigfillset(&one);
    sigdelset(&one, SIGUSR1);
    CHECK(sigsuspend(&one) == -1 && errno == EINTR && handled == SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &one);
    CHECK(sigismember(&one, SIGUSR1));
    return ok();
}
