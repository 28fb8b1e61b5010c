// Threads that count under a lock. BUG: without it.
#include <pthread.h>
#include <stdio.h>

static int total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument) {
    for (int i = 0; i < 100; i++) {
#ifndef BUG
        pthread_mutex_lock(&lock);
#endif
        total++;
#ifndef BUG
        pthread_mutex_unlock(&lock);
#endif
    }
    return argument;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    puts(total <= 300 ? "counted" : "too many");
    return 0;
}
