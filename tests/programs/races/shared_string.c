// finds: data-race
// Threads write a name to one buffer by functions of the C library, under a lock or not.
#include "twin.h"
#include <stdio.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char name[64];
static void *work(void *unused)
{
    for (int i = 0; i < 10; i++) {
        CLEAN(pthread_mutex_lock(&lock));
        snprintf(name, sizeof name, "number %d", i);
        sink((int)strlen(name));
        CLEAN(pthread_mutex_unlock(&lock));
        sched_yield();
    }
    return unused;
}
int main(void) { two(work, work); return 0; }
