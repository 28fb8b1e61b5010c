// Two counters sell tickets. The number left has a lock; the money taken has none.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int left = 20;
static int money;

static void *sell(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        int sold = left > 0;
        left -= sold;
        pthread_mutex_unlock(&lock);
        if (!sold)
            return unused;
        money += 5;
        sched_yield(); // the other counter has customers, too
    }
}

int main(void)
{
    pthread_t counters[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&counters[i], NULL, sell, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(counters[i], NULL);
    printf("%d\n", money);
    return 0;
}
