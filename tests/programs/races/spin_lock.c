// finds: data-race
// A spin lock of the thread library, given back too early.
#include "twin.h"
static pthread_spinlock_t lock;
static long counter;
static void *work(void *unused)
{
    for (int i = 0; i < 50; i++) {
        pthread_spin_lock(&lock);
        RACY(pthread_spin_unlock(&lock));
        counter++;
        CLEAN(pthread_spin_unlock(&lock));
    }
    return unused;
}
int main(void) { pthread_spin_init(&lock, 0); two(work, work); return counter == 0; }
