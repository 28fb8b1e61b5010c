// build: -O0 -pthread
// Stacks: the main stack grows by touching far below, alloca of megabytes, red-zone use in leaf
// functions under signals, thread stacks of chosen size and place, guard pages that fault.
#include "check.h"
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
static sigjmp_buf back;
static volatile sig_atomic_t ticks;
static void fault(int s) { siglongjmp(back, s); }
static void tick(int s) { (void)s; volatile char use[2000]; memset((void *)use, 7, sizeof use); ticks++; }
static int leaf(int a, int b) { volatile int x[12]; for (int i = 0; i < 12; i++) x[i] = a + i * b; int s = 0; for (int i = 0; i < 12; i++) s += x[i]; return s; }
static void *on_own_stack(void *arg)
{
    char local;
    CHECK(&local >= (char *)arg && &local < (char *)arg + (1 << 18));
    return arg;
}
static void *overflow(void *arg)
{
    stack_t alternate = {.ss_sp = malloc(32768), .ss_size = 32768};
    MUST(sigaltstack(&alternate, NULL));
    if (!sigsetjmp(back, 1))
        for (volatile char *p = (char *)&arg;; p -= 4096) *p = 1;
    return "overflowed";
}
int main(void)
{
    for (int megabytes = 1; megabytes <= 6; megabytes++) {
        volatile char *space = alloca(1 << 20);
        space[0] = 1, space[(1 << 20) - 1] = 2;
        CHECK(space[0] + space[(1 << 20) - 1] == 3);
    }
    struct sigaction act = {.sa_handler = tick};
    sigaction(SIGALRM, &act, NULL);
    struct itimerval every = {{0, 500}, {0, 500}}, stop = {0};
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; ticks < 50; i = (i + 1) % 1000) CHECK(leaf(i, 3) == 12 * i + 198);
    setitimer(ITIMER_REAL, &stop, NULL);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    void *stack = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *result;
    CHECK(!pthread_attr_setstack(&attr, stack, 1 << 18));
    pthread_t t;
    CHECK(!pthread_create(&t, &attr, on_own_stack, stack) && !pthread_join(t, &result) && result == stack);
    act.sa_handler = fault, act.sa_flags = SA_ONSTACK;
    sigaction(SIGSEGV, &act, NULL);
    CHECK(!pthread_create(&t, NULL, overflow, NULL) && !pthread_join(t, &result));
    puts(result);
    return ok();
}
