// build: -pthread -O1
// Blocks go from thread to thread; each has its own stack.
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct item { struct item *next; int value; } *queue;

static void *work(void *count) {
    for (int i = 0; i < *(int *)count; i++) {
        struct item *item = malloc(sizeof *item);
        item->value = i;
        pthread_mutex_lock(&lock);
        item->next = queue;
        queue = item;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int count = 20, sum = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &count);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    while (queue) {
        struct item *item = queue;
        queue = item->next;
        sum += item->value;
        free(item);
    }
    return sum != 570;
}
