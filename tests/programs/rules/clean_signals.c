// Handlers run where frames were, and return by an address that nobody but the kernel wrote.
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t seen;
static char elsewhere[64 << 10];

static void plain(int signal) { seen += signal; }

static void with_details(int signal, siginfo_t *details, void *context) {
    if (details->si_signo == signal && context)
        seen += signal;
}

static int deep(int levels) {
    char room[200];
    memset(room, levels, sizeof room);
    return levels ? deep(levels - 1) + room[5] : room[7];
}

int main(void) {
    stack_t own = {.ss_sp = elsewhere, .ss_size = sizeof elsewhere};
    sigaltstack(&own, NULL);
    struct sigaction action = {.sa_sigaction = with_details, .sa_flags = SA_SIGINFO};
    signal(SIGUSR1, plain);
    sigaction(SIGUSR2, &action, NULL);
    action.sa_flags |= SA_ONSTACK;
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 3; i++) {
        deep(20);
        raise(SIGUSR1);
        raise(SIGUSR2);
        raise(SIGALRM);
    }
    if (seen != 3 * (SIGUSR1 + SIGUSR2 + SIGALRM))
        puts("lost");
    return 0;
}
