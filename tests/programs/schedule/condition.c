// build: -O1 -pthread
// A bounded queue with a mutex and two condition variables: producers and consumers wait for each other
// all the time, some by broadcast. Who got which item is printed.
#include "check.h"
#include <pthread.h>

enum { ROOM = 4, ITEMS = 400, EACH = 2 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int queue[ROOM], first, count, taken;
static unsigned long long order[EACH];

static void *produce(void *argument)
{
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (count == ROOM) pthread_cond_wait(&emptied, &lock);
        queue[(first + count++) % ROOM] = i * EACH + (int)(long)argument;
        if (i % 3) pthread_cond_signal(&filled); else pthread_cond_broadcast(&filled);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *consume(void *argument)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        while (count == 0 && taken < ITEMS * EACH) pthread_cond_wait(&filled, &lock);
        if (count == 0) break;
        order[(long)argument] = order[(long)argument] * 31 + (unsigned)queue[first];
        first = (first + 1) % ROOM;
        count--;
        if (++taken == ITEMS * EACH) pthread_cond_broadcast(&filled);
        pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[2 * EACH];
    for (long i = 0; i < EACH; i++) {
        CHECK(pthread_create(&threads[i], NULL, produce, (void *)i) == 0);
        CHECK(pthread_create(&threads[EACH + i], NULL, consume, (void *)i) == 0);
    }
    for (int i = 0; i < 2 * EACH; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(taken == ITEMS * EACH);
    for (int i = 0; i < EACH; i++) printf("consumer %d %llx\n", i, order[i]);
    return ok();
}
