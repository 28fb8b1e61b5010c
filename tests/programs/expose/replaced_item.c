// depth: 2, no race
// A pointer to a cached item is taken in one critical section and the item changed in the next, though
// another thread has replaced it.
#include "expose.h"
struct item { long value; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct item items[2], *current = items;
static void *increment(void *unused)
{
    pthread_mutex_lock(&lock);
    struct item *item = current;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    item->value++;
    pthread_mutex_unlock(&lock);
    return unused;
}
static void *replace(void *unused)
{
    work(LONG);
    pthread_mutex_lock(&lock);
    items[1].value = current->value;
    current = &items[1];
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) { TOGETHER(increment, replace); return verdict(current->value != 1); }
