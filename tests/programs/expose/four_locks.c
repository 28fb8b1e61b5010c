// depth: 4, a deadlock
// Four threads, each takes its own lock and the next one's.
#include "expose.h"
static pthread_mutex_t locks[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *eat(void *argument)
{
    int self = (int)(long)argument;
    work(self * LONG / 4);
    pthread_mutex_lock(&locks[self]);
    pthread_mutex_lock(&locks[(self + 1) % 4]);
    pthread_mutex_unlock(&locks[(self + 1) % 4]);
    pthread_mutex_unlock(&locks[self]);
    return NULL;
}
int main(void) { TOGETHER(eat, eat, eat, eat); return verdict(0); }
