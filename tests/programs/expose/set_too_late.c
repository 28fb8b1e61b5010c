// depth: 1, a race
// The pointer that a thread uses is set after the thread is made.
#include "expose.h"
static int *volatile table;
static volatile int seen;
static void *use(void *unused) { work(LONG); seen = table[1]; return unused; }
int main(void)
{
    pthread_t thread;
    static int values[4];
    pthread_create(&thread, NULL, use, NULL);
    table = values;
    pthread_join(thread, NULL);
    return verdict(0);
}
