// build: -pthread
// One thread frees what another goes on using.
#include <pthread.h>
#include <stdlib.h>

static int *shared;

static void *work(void *unused) {
    (void)unused;
#ifndef FIXED
    free(shared);
#endif
    return NULL;
}

int main(void) {
    pthread_t thread;
    shared = malloc(100);
    shared[0] = 1;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    shared[0] = 2; // FINDS dangling-pointer
#ifdef FIXED
    free(shared);
#endif
    return 0;
}
