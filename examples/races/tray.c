// Waiters take plates from a stack of them. Whoever takes one looks at the top before the lock is held.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

struct tray { pthread_mutex_t lock; int plates[8]; int count; };

static struct tray tray = { .lock = PTHREAD_MUTEX_INITIALIZER };
static sem_t looked, taken;
static __thread int is_slow;

static void tray_put(struct tray *tray, int plate)
{
    pthread_mutex_lock(&tray->lock);
    tray->plates[tray->count++] = plate;
    pthread_mutex_unlock(&tray->lock);
}

static int tray_take(struct tray *tray)
{
#ifdef FIXED
    pthread_mutex_lock(&tray->lock);
#endif
    int top = tray->count ? tray->plates[tray->count - 1] : 0;
#ifndef FIXED
    if (is_slow) { // as if the thread were stopped here
        sem_post(&looked);
        sem_wait(&taken);
    }
    pthread_mutex_lock(&tray->lock);
#endif
    if (tray->count)
        tray->count--;
    pthread_mutex_unlock(&tray->lock);
    return top;
}

static void *slow_waiter(void *unused)
{
    is_slow = 1;
    printf("the slow waiter has plate %d\n", tray_take(&tray));
    return unused;
}

int main(void)
{
    pthread_t waiter;
    sem_init(&looked, 0, 0);
    sem_init(&taken, 0, 0);
    for (int plate = 1; plate <= 3; plate++)
        tray_put(&tray, plate);
    pthread_create(&waiter, NULL, slow_waiter, NULL);
#ifndef FIXED
    sem_wait(&looked);
#endif
    printf("the quick waiter has plate %d\n", tray_take(&tray));
    sem_post(&taken);
    pthread_join(waiter, NULL);
    return 0;
}
