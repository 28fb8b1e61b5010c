// build: -O1 -pthread
// Condition variables: everyone is woken, one gets the item; the order in which they got it is printed.
#include "check.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int items, finished, order[200], taken, useless;

static void *consumer(void *argument)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        while (items == 0 && !finished) {
            pthread_cond_wait(&changed, &lock);
            useless += items == 0 && !finished;
        }
        if (items == 0) break;
        items--;
        order[taken++] = (int)(long)argument;
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[5];
    for (long i = 0; i < 5; i++) CHECK(pthread_create(&threads[i], NULL, consumer, (void *)i) == 0);
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        items += 1 + i % 2;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        if (i % 5 == 0) usleep(200);
    }
    pthread_mutex_lock(&lock);
    finished = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 5; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(taken == 150);
    printf("useless %d order ", useless);
    for (int i = 0; i < taken; i++) putchar('a' + order[i]);
    putchar('\n');
    return ok();
}
