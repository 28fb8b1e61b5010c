// depth: 2, no race
// The value is read under the lock for readers and written under the one for writers.
#include "expose.h"
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int value;
static void add(void)
{
    pthread_rwlock_rdlock(&lock);
    int now = value;
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_wrlock(&lock);
    value = now + 1;
    pthread_rwlock_unlock(&lock);
}
static void *soon(void *unused) { add(); return unused; }
static void *late(void *unused) { work(LONG); add(); return unused; }
int main(void) { TOGETHER(soon, late); return verdict(value != 2); }
