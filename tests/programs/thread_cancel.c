// build: -O1 -pthread -fexceptions
// pthread_cancel: at cancellation points, asynchronously in a loop, with cleanup handlers in order,
// disabled and enabled again, of threads blocked in read, cond_wait, sleep.
#include "check.h"
#include <pthread.h>
static int p[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static char trail[64];
static int started;
static void mark(void *c) { strcat(trail, c); }
static void unlock(void *m) { pthread_mutex_unlock(m); }
static void begin(void) { __atomic_store_n(&started, 1, __ATOMIC_SEQ_CST); }
static void *reader(void *a)
{
    char c;
    pthread_cleanup_push(mark, "1");
    pthread_cleanup_push(mark, "2");
    begin();
    (void)!read(p[0], &c, 1);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return a;
}
static void *conditional(void *a)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    begin();
    for (;;) pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(1);
    return a;
}
static void *sleeper(void *a) { begin(); sleep(1000); return a; }
static void *looper(void *a)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    begin();
    for (volatile long i = 0;; i++) {}
    return a;
}
static void *refusing(void *a)
{
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    begin();
    usleep(5000);
    mark("r");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    for (;;) pthread_testcancel();
    return a;
}
int main(void)
{
    MUST(pipe(p));
    void *(*kinds[])(void *) = {reader, conditional, sleeper, looper, refusing};
    for (int i = 0; i < 15; i++) {
        pthread_t t;
        void *result;
        started = 0, trail[0] = 0;
        CHECK(!pthread_create(&t, NULL, kinds[i % 5], NULL));
        while (!__atomic_load_n(&started, __ATOMIC_SEQ_CST)) usleep(200);
        if (i >= 5) usleep(500);
        CHECK(!pthread_cancel(t) && !pthread_join(t, &result));
        CHECK(result == PTHREAD_CANCELED);
        printf("%d trail '%s'\n", i % 5, trail);
        CHECK(!pthread_mutex_lock(&mutex) && !pthread_mutex_unlock(&mutex));
    }
    return ok();
}
