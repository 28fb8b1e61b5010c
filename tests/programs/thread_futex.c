// build: -O1 -pthread
// Futexes by hand: wait/wake, bitset, requeue, timeouts, EAGAIN, a private lock, CLEARTID as join.
#include "check.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <signal.h>
static long futex(int *word, int op, int value, const void *time, int *other, int mask)
{
    return syscall(SYS_futex, word, op, value, time, other, mask);
}
static int lock_word, gate, second, inside, awake;
static void lock(void)
{
    int c = 0;
    if (__atomic_compare_exchange_n(&lock_word, &c, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE)) futex(&lock_word, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
}
static void unlock(void)
{
    if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2) futex(&lock_word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
static void *work(void *a)
{
    for (int i = 0; i < 3000; i++) {
        lock();
        CHECK(inside++ == 0);
        inside--;
        unlock();
    }
    return a;
}
static void *waiter(void *a)
{
    while (__atomic_load_n(&gate, __ATOMIC_SEQ_CST) == 0)
        futex(&gate, FUTEX_WAIT_BITSET, 0, NULL, NULL, 1 << (intptr_t)a);
    __atomic_add_fetch(&awake, 1, __ATOMIC_SEQ_CST);
    return a;
}
static void *requeued(void *a) { futex(&second, FUTEX_WAIT, 0, NULL, NULL, 0); return a; }
static int raw_thread(void *a) { *(int *)a = 77; return 0; }
int main(void)
{
    pthread_t t[4];
    for (long i = 0; i < 4; i++) CHECK(!pthread_create(&t[i], NULL, work, NULL));
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    CHECK(futex(&gate, FUTEX_WAIT, 5, NULL, NULL, 0) == -1 && errno == EAGAIN);
    struct timespec brief = {0, 2000000};
    CHECK(futex(&gate, FUTEX_WAIT, 0, &brief, NULL, 0) == -1 && errno == ETIMEDOUT);
    for (long i = 0; i < 4; i++) CHECK(!pthread_create(&t[i], NULL, waiter, (void *)i));
    usleep(10000);
    __atomic_store_n(&gate, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 4; i++) futex(&gate, FUTEX_WAKE_BITSET, 10, NULL, NULL, 1 << i);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    CHECK(awake == 4);
    for (long i = 0; i < 4; i++) CHECK(!pthread_create(&t[i], NULL, requeued, NULL));
    int woken = 0, moved = 0, target = 0;
    while (woken + moved < 4) {
        long n = futex(&second, FUTEX_CMP_REQUEUE, 1, (void *)10, &target, 0);
        CHECK(n >= 0);
        if (n > 0) { moved += (int)n; long w = futex(&target, FUTEX_WAKE, 10, 0, 0, 0); (void)w; }
        usleep(500);
    }
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int tid = 1, result = 0;                     /* a thread without pthreads: CLEARTID tells its end */
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
    CHECK(clone(raw_thread, stack + 65536, flags, &result, &tid, NULL, &tid) > 0);
    for (int now; (now = __atomic_load_n(&tid, __ATOMIC_SEQ_CST));) futex(&tid, FUTEX_WAIT, now, NULL, NULL, 0);
    CHECK(result == 77);
    return ok();
}
