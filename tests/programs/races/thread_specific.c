// finds: data-race
// A buffer for each thread by pthread_setspecific, or one for all.
#include "twin.h"
#include <stdlib.h>
static pthread_key_t key;
static int common[4];
static void *work(void *unused)
{
    pthread_setspecific(key, TWIN(common, calloc(4, sizeof(int))));
    for (int i = 0; i < 20; i++) {
        int *own = pthread_getspecific(key);
        own[i % 4]++;
        sched_yield();
    }
    CLEAN(free(pthread_getspecific(key)));
    return unused;
}
int main(void)
{
    pthread_key_create(&key, NULL);
    two(work, work);
    return 0;
}
