// finds: lost-update
// schedule: random
// No data race: a pointer to an item is taken out of a list in one critical section, and the item is changed
// in the next, though another thread may have replaced it in the list.
#include "twin.h"
struct item { long value; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct item items[8], *current = items;
static void *increment(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        struct item *item = current;
        RACY(pthread_mutex_unlock(&lock); sched_yield(); pthread_mutex_lock(&lock));
        item->value++;
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return unused;
}
static void *replace(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        struct item *next = &items[i % 8];
        next->value = current->value;
        current = next;
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return unused;
}
int main(void) { two(increment, replace); return 0; }
