// build: -O1 -pthread
// Philosophers with semaphores, who give up with sem_trywait and yield; and a pipe of semaphores.
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

enum { SEATS = 5, MEALS = 80 };
static sem_t forks[SEATS], turn[SEATS];
static long tries[SEATS];
static unsigned long long order;

static void *dine(void *argument)
{
    int self = (int)(long)argument;
    for (int meal = 0; meal < MEALS; meal++) {
        for (;; tries[self]++) {
            sem_wait(&forks[self]);
            if (sem_trywait(&forks[(self + 1) % SEATS]) == 0) break;
            sem_post(&forks[self]);
            sched_yield();
        }
        sem_post(&forks[(self + 1) % SEATS]);
        sem_post(&forks[self]);
        sem_wait(&turn[self]);
        order = order * 31 + (unsigned)tries[self];
        sem_post(&turn[(self + 1) % SEATS]);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[SEATS];
    for (int i = 0; i < SEATS; i++) MUST(sem_init(&forks[i], 0, 1) | sem_init(&turn[i], 0, i == 0));
    for (long i = 0; i < SEATS; i++) CHECK(pthread_create(&threads[i], NULL, dine, (void *)i) == 0);
    for (int i = 0; i < SEATS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < SEATS; i++) printf("%ld ", tries[i]);
    printf("order %llx\n", order);
    return ok();
}
