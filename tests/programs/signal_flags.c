// build: -O1
// SA_NODEFER, SA_RESETHAND, sa_mask, nested handlers of different signals, raise in a handler, the
// old action that sigaction returns, and pending signals delivered at unblock: the kernel makes all the
// frames, lowest number first, before any handler runs, so the highest number runs first.
#include "check.h"
#include <signal.h>
static volatile int depth, deepest, raised;
static void nesting(int s)
{
    if (++depth > deepest) deepest = depth;
    if (raised++ < 4) raise(s);
    depth--;
}
static char order[64];
static void append(int s)
{
    char *end = order + strlen(order);
    *end++ = s == SIGUSR1 ? 'a' : s == SIGUSR2 ? 'b' : 'c';
    *end = 0;
}
static void inner_then_mark(int s)
{
    raise(SIGUSR2);            /* blocked by sa_mask: comes after this handler */
    strcat(order, "(");
    append(s);
    strcat(order, ")");
}
int main(void)
{
    struct sigaction act = {.sa_handler = nesting, .sa_flags = SA_NODEFER}, old;
    MUST(sigaction(SIGUSR1, &act, NULL));
    raise(SIGUSR1);
    CHECK(depth == 0);
    printf("nodefer depth %d\n", deepest);
    act.sa_flags = 0;
    deepest = raised = 0;
    MUST(sigaction(SIGUSR1, &act, &old));
    CHECK(old.sa_handler == nesting && (old.sa_flags & SA_NODEFER));
    raise(SIGUSR1);
    printf("deferred depth %d\n", deepest);

    act.sa_handler = append, act.sa_flags = SA_RESETHAND;
    MUST(sigaction(SIGUSR1, &act, NULL));
    raise(SIGUSR1);
    MUST(sigaction(SIGUSR1, NULL, &old));
    CHECK(old.sa_handler == SIG_DFL && strcmp(order, "a") == 0);

    order[0] = 0;
    act.sa_flags = 0;
    MUST(sigaction(SIGUSR2, &act, NULL));
    act.sa_handler = inner_then_mark;
    sigaddset(&act.sa_mask, SIGUSR2);
    MUST(sigaction(SIGUSR1, &act, NULL));
    raise(SIGUSR1);
    printf("masked %s\n", order);

    order[0] = 0;
    act.sa_handler = append;
    sigemptyset(&act.sa_mask);
    int three[] = {SIGUSR1, SIGUSR2, SIGHUP};
    sigset_t set, pending, before;
    sigemptyset(&set);
    for (int i = 0; i < 3; i++) sigaction(three[i], &act, NULL), sigaddset(&set, three[i]);
    MUST(sigprocmask(SIG_BLOCK, &set, &before));
    for (int i = 0; i < 3; i++) raise(three[i]), raise(three[i]);
    MUST(sigpending(&pending));
    CHECK(sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGUSR2) && sigismember(&pending, SIGHUP));
    CHECK(order[0] == 0);
    MUST(sigprocmask(SIG_SETMASK, &before, NULL));
    CHECK(strlen(order) == 3);              /* standard signals do not queue */
    printf("at unblock %s\n", order);
    struct sigaction kill_act = {.sa_handler = append};
    CHECK(sigaction(SIGKILL, &kill_act, NULL) == -1 && errno == EINVAL);
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    return ok();
}
