// finds: data-race
// A result is read before, or after, the thread that makes it has been joined.
#include "twin.h"
static int result;
static void *work(void *unused) { result = 42; return unused; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    RACY(sink(result));
    pthread_join(thread, NULL);
    sink(result);
    return 0;
}
