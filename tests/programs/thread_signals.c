// build: -O1 -pthread
// Signals and threads: pthread_kill to one of many, masks per thread, a process signal lands on a
// thread that does not block it, sigqueue to a sigwait thread, handlers on thread altstacks, a fault
// in a thread handled there.
#include "check.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
static atomic_int hits[5], ready, sum;
static __thread int me = -1;
static __thread sigjmp_buf recover;
static void handler(int s) { (void)s; atomic_fetch_add(&hits[me], 1); }
static void fault(int s, siginfo_t *si, void *uc) { (void)s, (void)uc; siglongjmp(recover, 1 + (int)(intptr_t)si->si_addr); }
static atomic_int stop;
static void *target(void *arg)
{
    me = (int)(intptr_t)arg;
    static char stacks[5][32768];
    stack_t mine = {.ss_sp = stacks[me], .ss_size = sizeof stacks[me]};
    MUST(sigaltstack(&mine, NULL));
    volatile int rounds = 0;
    for (; rounds < 100; rounds++) {
        int got = sigsetjmp(recover, 1);
        if (!got) *(volatile int *)(intptr_t)(me * 8 + 8) = 0;
        CHECK(got == me * 8 + 9);
    }
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&stop)) usleep(1000);
    return arg;
}
static void *waiter(void *arg)
{
    sigset_t *set = arg;
    siginfo_t info;
    for (int i = 0; i < 20; i++) {
        CHECK(sigwaitinfo(set, &info) == SIGRTMIN + 1);
        atomic_fetch_add(&sum, info.si_value.sival_int);
    }
    return arg;
}
int main(void)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGUSR1, &act, NULL);
    sigaction(SIGUSR2, &act, NULL);
    act.sa_sigaction = fault, act.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &act, NULL);
    sigset_t rt;
    sigemptyset(&rt);
    sigaddset(&rt, SIGRTMIN + 1);
    pthread_sigmask(SIG_BLOCK, &rt, NULL);
    pthread_t t[4], w;
    for (long i = 0; i < 4; i++) CHECK(!pthread_create(&t[i], NULL, target, (void *)i));
    CHECK(!pthread_create(&w, NULL, waiter, &rt));
    for (int i = 1; i <= 20; i++) {
        union sigval v = {.sival_int = i};
        MUST(sigqueue(getpid(), SIGRTMIN + 1, v));
    }
    CHECK(!pthread_join(w, NULL));
    while (ready < 4) usleep(1000);
    for (int i = 0; i < 4; i++)
        for (int n = 0; n <= i; n++) {
            int before = hits[i];
            CHECK(!pthread_kill(t[i], SIGUSR1));
            while (hits[i] == before) usleep(100);
        }
    printf("hits %d %d %d %d\n", hits[0], hits[1], hits[2], hits[3]);
    me = 4;
    sigset_t usr2;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    int total = hits[0] + hits[1] + hits[2] + hits[3];
    pthread_sigmask(SIG_BLOCK, &usr2, NULL);
    kill(getpid(), SIGUSR2);                          /* not to main: it is blocked here */
    while (hits[0] + hits[1] + hits[2] + hits[3] == total) usleep(100);
    CHECK(hits[4] == 0);
    pthread_sigmask(SIG_UNBLOCK, &usr2, NULL);
    syscall(SYS_tgkill, getpid(), gettid(), SIGUSR2);
    CHECK(hits[4] == 1);
    stop = 1;
    for (int i = 0; i < 4; i++) CHECK(!pthread_join(t[i], NULL));
    printf("sum %d\n", sum);
    return ok();
}
