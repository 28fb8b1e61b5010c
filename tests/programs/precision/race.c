// Figure 5.4 of DrDebug: thread T2 takes it that nobody changes x between its test and its use; T1
// does, and the assertion fails. Semaphores make the interleaving always the same.
// build: gcc -g -O0 -pthread
// ask: --at race.c:41 --value k --kind full
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>

static int x, y, z;
static sem_t y_is_set, tested, changed;

static void *first(void *unused) {
    x = 5;
    z = x;
    sem_wait(&y_is_set);
    int w = y;
    w = w - 2;
    int m = 3 * x;
    sem_wait(&tested);
    x = m + 2; /* ROOT: between the test and the use in T2 */
    sem_post(&changed);
    (void)w;
    return unused;
}

static void *second(void *unused) {
    y = 2;
    int j = y + 1;
    j = z + j;
    int k = 4 * y;
    sem_post(&y_is_set);
    while (x == 0)
        sched_yield();
    if (k > x) {
        sem_post(&tested);
        sem_wait(&changed);
        k = k - x;
        (void)j;
        assert(k > 0);
    }
    return unused;
}

int main(void) {
    sem_init(&y_is_set, 0, 0);
    sem_init(&tested, 0, 0);
    sem_init(&changed, 0, 0);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
