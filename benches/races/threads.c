// A load for the bench: threads that add up an array of their own, and meet under a lock now and then.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long total;
static int rounds;

static void *work(void *argument)
{
    unsigned long values[512], sum = (unsigned long)argument;
    for (int i = 0; i < 512; i++)
        values[i] = sum + i;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 512; i++)
            values[i] = values[i] * 31 + values[(i + 7) & 511];
        pthread_mutex_lock(&lock);
        total += values[round & 511];
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    int threads = count > 1 ? atoi(arguments[1]) : 2;
    pthread_t all[64];
    rounds = count > 2 ? atoi(arguments[2]) : 1000;
    for (long i = 0; i < threads && i < 64; i++)
        pthread_create(&all[i], NULL, work, (void *)i);
    for (int i = 0; i < threads && i < 64; i++)
        pthread_join(all[i], NULL);
    printf("%lu\n", total);
    return 0;
}
