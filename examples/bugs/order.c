/* A thread is used before it has been set up.
 *
 * The main thread starts a compressor and fills in its queue afterwards. The compressor is faster
 * (it is made to be) and finds a queue that is not there yet.
 *
 * build: gcc -g -pthread -o order order.c
 * ends:  SIGSEGV in take_block
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct queue {
    int blocks[16];
    int head, tail;
};

struct worker {
    pthread_t thread;
    struct queue *queue;
    long packed;
};

static sem_t started;

static struct queue *new_queue(int blocks) {
    struct queue *queue = calloc(1, sizeof *queue);
    for (int i = 0; i < blocks; i++)
        queue->blocks[queue->tail++] = 100 + i;
    return queue;
}

static int take_block(struct queue *queue) {
    if (queue->head == queue->tail)
        return -1;
    return queue->blocks[queue->head++];
}

static void *pack(void *argument) {
    struct worker *worker = argument;
    sem_post(&started);
    for (int block; (block = take_block(worker->queue)) >= 0;)
        worker->packed += block;
    return NULL;
}

static void clear(struct worker *worker) {
    worker->queue = NULL; /* ROOT: still so when the thread runs */
    worker->packed = 0;
}

static void start(struct worker *worker) {
    pthread_create(&worker->thread, NULL, pack, worker);
    sem_wait(&started);
    usleep(300000); /* the main thread is late */
    worker->queue = new_queue(8);
}

int main(void) {
    static struct worker worker;
    sem_init(&started, 0, 0);
    clear(&worker);
    start(&worker);
    pthread_join(worker.thread, NULL);
    printf("packed %ld\n", worker.packed);
    return 0;
}
