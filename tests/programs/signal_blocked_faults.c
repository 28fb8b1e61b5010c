// build: -O1
// Signals that the processor raises, sent by kill while they are blocked: pending, taken by
// sigtimedwait, delivered when unblocked; and several of them at once.
#include "check.h"
#include <signal.h>
#include <time.h>
static volatile int handled;
static void handler(int signal) { handled += signal; }
static const int sent[] = {SIGFPE, SIGSEGV, SIGSTKFLT, SIGTRAP, SIGUSR1};
int main(void)
{
    sigset_t set, old, pending;
    sigemptyset(&set);
    for (int i = 0; i < 5; i++) {
        signal(sent[i], handler);
        sigaddset(&set, sent[i]);
    }
    MUST(sigprocmask(SIG_BLOCK, &set, &old));
    for (int i = 0; i < 5; i++) {
        MUST(kill(getpid(), sent[i]));
        MUST(raise(sent[i]));
    }
    CHECK(handled == 0);
    MUST(sigpending(&pending));
    for (int i = 0; i < 5; i++) CHECK(sigismember(&pending, sent[i]));
    CHECK(!sigismember(&pending, SIGBUS));
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGSEGV);
    siginfo_t info;
    struct timespec limit = {5, 0};
    CHECK(sigtimedwait(&one, &info, &limit) == SIGSEGV);
    CHECK(info.si_pid == getpid());
    while (sigtimedwait(&one, &info, &(struct timespec){0, 0}) == SIGSEGV) {} /* to the process and to the thread */
    MUST(sigprocmask(SIG_SETMASK, &old, NULL));
    CHECK(handled >= SIGFPE + SIGSTKFLT + SIGTRAP + SIGUSR1);
    MUST(sigpending(&pending));
    for (int i = 0; i < 5; i++) CHECK(!sigismember(&pending, sent[i]));
    return ok();
}
