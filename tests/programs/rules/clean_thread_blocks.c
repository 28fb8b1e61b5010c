// Blocks that one thread freed are another's: the C library leaves its key in them, and finds it there
// when they are freed again.
#include <pthread.h>
#include <stdlib.h>

static void *work(void *nothing) {
    void *blocks[50];
    for (int i = 0; i < 50; i++)
        blocks[i] = malloc(i * 7);
    for (int i = 0; i < 50; i++)
        free(blocks[i]);
    return nothing;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
