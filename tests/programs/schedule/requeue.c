// build: -O1 -pthread
// Bare futexes: waits with bits, wakes by bits, one by one, moved to another word, and with an
// operation on a second word.
#include "check.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { THREADS = 6 };
static atomic_uint gate, second, arrived, left;
static unsigned long long order;

static long futex(atomic_uint *word, int operation, unsigned value, unsigned long more, atomic_uint *other, unsigned last)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, more, other, last);
}

static void *work(void *argument)
{
    unsigned self = (unsigned)(long)argument;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&gate) == 0) futex(&gate, FUTEX_WAIT_BITSET, 0, 0, NULL, 1u << self);
    while (atomic_load(&second) < 3) futex(&second, FUTEX_WAIT, atomic_load(&second), 0, NULL, 0);
    order = order * 31 + self + 1;
    atomic_fetch_add(&left, 1);
    futex(&left, FUTEX_WAKE, 1, 0, NULL, 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    while (atomic_load(&arrived) < THREADS) sched_yield();
    for (int i = 0; i < 1000; i++) sched_yield(); // all of them wait now
    CHECK(futex(&gate, FUTEX_WAIT, 5, 0, NULL, 0) == -1 && errno == EAGAIN);
    long some = futex(&gate, FUTEX_WAKE_BITSET, 10, 0, NULL, 0x5);
    long moved = futex(&gate, FUTEX_CMP_REQUEUE, 1, 2, &second, 0);
    atomic_store(&gate, 1);
    long rest = futex(&gate, FUTEX_WAKE, 100, 0, NULL, 0);
    unsigned add = FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_GE, 0);
    for (int i = 0; i < 3; i++) futex(&gate, FUTEX_WAKE_OP, 1, 100, &second, add);
    while (atomic_load(&left) < THREADS) {
        unsigned seen = atomic_load(&left);
        if (seen < THREADS) futex(&left, FUTEX_WAIT, seen, 0, NULL, 0);
        futex(&second, FUTEX_WAKE, 100, 0, NULL, 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(atomic_load(&second) == 3);
    printf("woken %ld moved %ld rest %ld order %llx\n", some, moved, rest, order);
    return ok();
}
