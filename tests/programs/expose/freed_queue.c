// build: -O1 -g -pthread
// The main thread waits until the queue is empty, then destroys and frees it, though a consumer may not
// have left it yet: nothing orders its last look with the end of the queue.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct queue {
    pthread_mutex_t *lock;
    pthread_cond_t ready;
    int items;
    int closed;
};

static struct queue *queue;
static int eaten;

static void *consume(void *unused)
{
    struct queue *own = queue;
    for (;;) {
        pthread_mutex_lock(own->lock);
        while (own->items == 0 && !own->closed) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += 1;
            pthread_cond_timedwait(&own->ready, own->lock, &until);
        }
        int last = own->items == 0;
        if (!last) {
            own->items--;
            eaten++;
        }
        pthread_mutex_unlock(own->lock);
        if (last)
            break;
    }
    return unused;
}

int main(void)
{
    pthread_t consumer;
    pthread_mutex_t *lock = malloc(sizeof *lock);
    pthread_mutex_init(lock, NULL);
    queue = calloc(1, sizeof *queue);
    queue->lock = lock;
    pthread_cond_init(&queue->ready, NULL);
    pthread_create(&consumer, NULL, consume, NULL);
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(lock);
        queue->items++;
        pthread_cond_signal(&queue->ready);
        pthread_mutex_unlock(lock);
    }
    for (int empty = 0; !empty;) {
        pthread_mutex_lock(lock);
        empty = queue->items == 0;
        pthread_mutex_unlock(lock);
        struct timespec nap = {0, 1000000};
        nanosleep(&nap, NULL);
    }
    pthread_mutex_lock(lock);
    queue->closed = 1;
    pthread_cond_signal(&queue->ready);
    pthread_mutex_unlock(lock);
    struct timespec nap = {0, 20000000};
    nanosleep(&nap, NULL);
    queue->lock = NULL;
    free(queue);
    pthread_join(consumer, NULL);
    puts(eaten == 20 ? "ok" : "lost");
    return eaten != 20;
}
