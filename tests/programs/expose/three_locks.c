// depth: 3, a deadlock
// Three threads, each takes its own lock and the next one's.
#include "expose.h"
static pthread_mutex_t locks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *eat(void *argument)
{
    int self = (int)(long)argument;
    work(self * LONG / 2);
    pthread_mutex_lock(&locks[self]);
    pthread_mutex_lock(&locks[(self + 1) % 3]);
    pthread_mutex_unlock(&locks[(self + 1) % 3]);
    pthread_mutex_unlock(&locks[self]);
    return NULL;
}
int main(void) { TOGETHER(eat, eat, eat); return verdict(0); }
