// build: -O1 -g -pthread
// No data race: a counter is read under its lock, and what is made of it written in a second critical
// section of the same lock. The other thread's increment in between is lost.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long value;

static long get(void)
{
    pthread_mutex_lock(&lock);
    long now = value;
    pthread_mutex_unlock(&lock);
    return now;
}

static void set(long to)
{
    pthread_mutex_lock(&lock);
    value = to;
    pthread_mutex_unlock(&lock);
}

static void *increment(void *unused)
{
    for (int i = 0; i < 10; i++) {
        set(get() + 1);
        for (volatile int work = 0; work < 2000; work++)
            ;
    }
    return unused;
}

int main(void)
{
    pthread_t other;
    pthread_create(&other, NULL, increment, NULL);
    increment(NULL);
    pthread_join(other, NULL);
    puts(value == 20 ? "ok" : "lost");
    return value != 20;
}
