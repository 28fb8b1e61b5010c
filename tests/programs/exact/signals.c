/* build: -O1 -static
 * Signals sent to oneself with raise, kill and sigqueue; blocked and taken later; a handler that
 * raises another. */
#include <signal.h>
#include <unistd.h>

static volatile int seen;

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)context;
    seen = seen * 3 + signal + info->si_value.sival_int;
    if (signal == SIGUSR1) raise(SIGUSR2);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, 0);
    sigaction(SIGUSR2, &action, 0);
    sigaction(SIGHUP, &action, 0);
    raise(SIGUSR1);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    sigqueue(getpid(), SIGHUP, (union sigval){.sival_int = 40});
    kill(getpid(), SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &all, 0);
    return seen & 127;
}
