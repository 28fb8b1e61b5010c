// finds: data-race
// schedule: random
// Of two threads that make a sum only the first is waited for.
#include "twin.h"
static long sums[2];
static void *work(void *argument)
{
    long *sum = argument;
    for (int i = 0; i < 10; i++)
        *sum += i;
    return NULL;
}
int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &sums[i]);
    pthread_join(threads[0], NULL);
    CLEAN(pthread_join(threads[1], NULL));
    sink((int)(sums[0] + sums[1]));
    RACY(pthread_join(threads[1], NULL));
    return 0;
}
