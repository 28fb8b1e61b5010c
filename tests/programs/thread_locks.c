// build: -O2 -pthread
// Mutexes of every kind, condition variables, read-write locks, barriers, semaphores, once.
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
enum { THREADS = 4, ROUNDS = 5000 };
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, recursive, checked;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t sem;
static long counter, shared_value, once_count, last_ones;
static int turn;
static void init_once(void) { once_count++; }
static void *work(void *arg)
{
    long me = (long)arg;
    pthread_once(&once, init_once);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&plain);
        counter++;
        pthread_mutex_unlock(&plain);
    }
    for (int i = 0; i < 200; i++) {                 /* strictly in turn */
        pthread_mutex_lock(&plain);
        while (turn != me) pthread_cond_wait(&turn_changed, &plain);
        shared_value = shared_value * 3 % 1000003 + me;
        turn = (turn + 1) % THREADS;
        pthread_cond_broadcast(&turn_changed);
        pthread_mutex_unlock(&plain);
    }
    for (int i = 0; i < 50; i++) {
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_add_fetch(&last_ones, 1, __ATOMIC_SEQ_CST);
    }
    for (int i = 0; i < 500; i++) {
        pthread_rwlock_rdlock(&rw);
        CHECK(shared_value >= 0);
        pthread_rwlock_unlock(&rw);
        pthread_rwlock_wrlock(&rw);
        counter++;
        pthread_rwlock_unlock(&rw);
        pthread_mutex_lock(&recursive), pthread_mutex_lock(&recursive);
        counter++;
        pthread_mutex_unlock(&recursive), pthread_mutex_unlock(&recursive);
    }
    sem_post(&sem);
    return NULL;
}
int main(void)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checked, &attr);
    pthread_barrier_init(&barrier, NULL, THREADS);
    sem_init(&sem, 0, 0);
    pthread_t t[THREADS];
    for (long i = 0; i < THREADS; i++) CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
    for (int i = 0; i < THREADS; i++) MUST(sem_wait(&sem));
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(t[i], NULL));
    CHECK(pthread_mutex_unlock(&checked) == EPERM && !pthread_mutex_lock(&checked));
    CHECK(pthread_mutex_lock(&checked) == EDEADLK);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 1000000;
    if (soon.tv_nsec >= 1000000000) soon.tv_sec++, soon.tv_nsec -= 1000000000;
    pthread_mutex_lock(&plain);
    CHECK(pthread_cond_timedwait(&turn_changed, &plain, &soon) == ETIMEDOUT);
    pthread_mutex_unlock(&plain);
    /* the read-write and recursive sections guard the same counter with different locks */
    printf("counter at least %d %d, once %ld, last %ld, value %ld\n", THREADS * ROUNDS,
           counter >= THREADS * ROUNDS, once_count, last_ones, shared_value);
    return ok();
}
