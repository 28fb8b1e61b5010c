// build: -O1 -pthread
// build: -O1 -static -pthread
// Create and join storms, detached threads, return values, thread-specific data destructors.
#include "check.h"
#include <pthread.h>
static pthread_key_t key;
static int destroyed, detached;
static __thread long local = 7;
static void destroy(void *p) { __atomic_add_fetch(&destroyed, (int)(intptr_t)p, __ATOMIC_SEQ_CST); }
static void *work(void *arg)
{
    pthread_setspecific(key, (void *)1);
    local += (intptr_t)arg;
    return (void *)(local * 2);
}
static void *let_go(void *arg) { __atomic_add_fetch(&detached, 1, __ATOMIC_SEQ_CST); return arg; }
int main(void)
{
    CHECK(!pthread_key_create(&key, destroy));
    long sum = 0;
    for (int round = 0; round < 25; round++) {
        pthread_t t[20];
        for (long i = 0; i < 20; i++) CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
        for (long i = 0; i < 20; i++) {
            void *result;
            CHECK(!pthread_join(t[i], &result));
            CHECK((long)result == 2 * (7 + i));
            sum += (long)result;
        }
    }
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 50; i++) {
        pthread_t t;
        CHECK(!pthread_create(&t, &attr, let_go, NULL));
    }
    while (__atomic_load_n(&detached, __ATOMIC_SEQ_CST) < 50) usleep(1000);
    printf("sum %ld destroyed %d local %ld\n", sum, destroyed, local);
    return ok();
}
