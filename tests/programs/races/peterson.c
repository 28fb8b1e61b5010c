// finds: data-race
// Peterson's lock for two threads, of atomic variables or plain ones.
#include "twin.h"
#include <stdatomic.h>
static TWIN(volatile int, _Atomic int) wants[2], turn;
static long counter;
static void *work(void *argument)
{
    int self = (int)(long)argument;
    for (int i = 0; i < 20; i++) {
        wants[self] = 1;
        turn = 1 - self;
        while (wants[1 - self] && turn == 1 - self)
            sched_yield();
        counter++;
        wants[self] = 0;
        sched_yield();
    }
    return NULL;
}
int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return counter == 0;
}
