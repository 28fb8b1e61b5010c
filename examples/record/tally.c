// Four threads count together and lose some of it: a data race. No two runs need print the same; a
// recording always does.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile long votes;

static void *count(void *unused)
{
    for (int i = 0; i < 500000; i++) votes = votes + 1;
    return unused;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("process %d counted %ld of 2000000 votes\n", getpid(), votes);
    return 0;
}
