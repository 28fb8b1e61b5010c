// Peterson's lock, of plain loads and stores: nothing that a detector knows orders what it protects.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

struct gate { volatile int wants[2]; volatile int turn; };

static struct gate gate;
static int total;

__attribute__((noinline)) static void gate_enter(struct gate *gate, int me)
{
    gate->wants[me] = 1;
    gate->turn = 1 - me;
    __asm__ volatile("mfence" ::: "memory");
    while (gate->wants[1 - me] && gate->turn == 1 - me)
        sched_yield();
}

__attribute__((noinline)) static void gate_leave(struct gate *gate, int me)
{
    gate->wants[me] = 0;
}

static void *work(void *number)
{
    for (int i = 0; i < 20; i++) {
        gate_enter(&gate, (int)(long)number);
        total++;
        gate_leave(&gate, (int)(long)number);
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
    printf("%d\n", total);
    return 0;
}
