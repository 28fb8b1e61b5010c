// build: -O2 -pthread
// Spin waits without any system call: two threads that only make progress if the engine preempts,
// a ticket lock, a seqlock, Peterson's algorithm with fences, and pthread spin locks.
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
static atomic_int ball, ticket, serving;
static volatile int interested[2], victim;
static long by_peterson, by_ticket, by_spin;
static pthread_spinlock_t spin;
static void *player(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < 30; i++) {                      /* pure ping-pong */
        while (atomic_load_explicit(&ball, memory_order_acquire) != me) {}
        atomic_store_explicit(&ball, 1 - me, memory_order_release);
    }
    for (int i = 0; i < 2000; i++) {
        int mine = atomic_fetch_add(&ticket, 1);
        while (atomic_load(&serving) != mine) __builtin_ia32_pause();
        by_ticket++;
        atomic_store(&serving, mine + 1);
    }
    for (int i = 0; i < 2000; i++) {
        interested[me] = 1;
        victim = me;
        atomic_thread_fence(memory_order_seq_cst);
        while (interested[1 - me] && victim == me) {}
        by_peterson++;
        atomic_thread_fence(memory_order_seq_cst);
        interested[me] = 0;
    }
    for (int i = 0; i < 2000; i++) {
        pthread_spin_lock(&spin);
        by_spin++;
        pthread_spin_unlock(&spin);
    }
    return NULL;
}
int main(void)
{
    pthread_spin_init(&spin, 0);
    pthread_t t[2];
    for (long i = 0; i < 2; i++) CHECK(!pthread_create(&t[i], NULL, player, (void *)i));
    for (int i = 0; i < 2; i++) CHECK(!pthread_join(t[i], NULL));
    printf("ticket %ld peterson %ld spin %ld ball %d\n", by_ticket, by_peterson, by_spin, atomic_load(&ball));
    return ok();
}
