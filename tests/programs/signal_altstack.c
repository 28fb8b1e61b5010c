// build: -O0
// sigaltstack: a stack overflow handled on it and left by siglongjmp, SS_ONSTACK, EPERM while on it,
// SS_AUTODISARM, nested handlers that stay on it.
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif
static sigjmp_buf out;
static char stack[65536] __attribute__((aligned(16)));
static int inside(void *p) { return (char *)p >= stack && (char *)p < stack + sizeof stack; }
static void overflowed(int s, siginfo_t *si, void *uc)
{
    (void)uc;
    stack_t now, other = {.ss_flags = SS_DISABLE};
    CHECK(inside(&now) && s == SIGSEGV && si->si_addr != NULL);
    sigaltstack(NULL, &now);
    CHECK(now.ss_flags & SS_ONSTACK);
    CHECK(sigaltstack(&other, NULL) == -1 && errno == EPERM);
    siglongjmp(out, 1);
}
static int recurse(int n) { volatile char frame[4096]; frame[1] = (char)n; return n < 0 ? 0 : recurse(n + 1) + frame[1]; }
static void second(int s) { (void)s; int here; CHECK(inside(&here)); }
static void first(int s) { (void)s; int here; CHECK(inside(&here)); raise(SIGUSR2); }
static void plain(int s) { (void)s; int here; CHECK(!inside(&here)); }
static void disarmed(int s)
{
    (void)s;
    stack_t now;
    CHECK(inside(&now));
    MUST(sigaltstack(NULL, &now));
    CHECK(now.ss_flags & SS_DISABLE);
}
int main(void)
{
    struct rlimit small = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_STACK, &small);
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack}, before;
    MUST(sigaltstack(&alternate, &before));
    CHECK(before.ss_flags & SS_DISABLE);
    struct sigaction act = {.sa_sigaction = overflowed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &act, NULL);
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(out, 1) == 0) recurse(0);
    act.sa_flags = SA_ONSTACK, act.sa_handler = first;
    sigaction(SIGUSR1, &act, NULL);
    act.sa_handler = second;
    sigaction(SIGUSR2, &act, NULL);
    raise(SIGUSR1);
    act.sa_flags = 0, act.sa_handler = plain;
    sigaction(SIGHUP, &act, NULL);
    raise(SIGHUP);
    alternate.ss_flags = SS_AUTODISARM;
    MUST(sigaltstack(&alternate, NULL));
    act.sa_flags = SA_ONSTACK, act.sa_handler = disarmed;
    sigaction(SIGTERM, &act, NULL);
    raise(SIGTERM);
    stack_t now;
    MUST(sigaltstack(NULL, &now));
    CHECK(now.ss_sp == stack && !(now.ss_flags & SS_DISABLE));
    return ok();
}
