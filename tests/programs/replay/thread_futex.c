// build: -O1 -pthread
// Who is woken first: bare futexes with one waker, waiters that give up, and a requeue.
#include "check.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

static atomic_int gate, second, order[64], count;

static long futex(atomic_int *word, int operation, int value, void *extra, atomic_int *other)
{
    return syscall(SYS_futex, word, operation, value, extra, other, 0);
}

static void *waiter(void *argument)
{
    int self = (int)(long)argument;
    struct timespec limit = {0, 3000000 + self * 1000000};
    int timeouts = 0;
    while (atomic_load(&gate) == 0)
        if (futex(&gate, FUTEX_WAIT_PRIVATE, 0, self % 2 ? NULL : &limit, NULL) != 0)
            timeouts += errno == ETIMEDOUT;
    order[atomic_fetch_add(&count, 1)] = self * 100 + timeouts;
    return NULL;
}

int main(void)
{
    pthread_t threads[6];
    for (long i = 0; i < 6; i++) CHECK(pthread_create(&threads[i], NULL, waiter, (void *)i) == 0);
    usleep(8000);
    long moved = futex(&gate, FUTEX_REQUEUE_PRIVATE, 0, (void *)2L, &second);
    atomic_store(&gate, 1);
    long woken = 0;
    while (atomic_load(&count) < 6) {
        woken += futex(&second, FUTEX_WAKE_PRIVATE, 1, NULL, NULL);
        woken += futex(&gate, FUTEX_WAKE_PRIVATE, 1, NULL, NULL);
    }
    for (int i = 0; i < 6; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("moved %ld woken %ld order", moved, woken);
    for (int i = 0; i < 6; i++) printf(" %d", order[i]);
    printf("\n");
    return ok();
}
