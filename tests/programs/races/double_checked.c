// finds: data-race
// Double-checked locking, with a plain or an atomic flag.
#include "twin.h"
#include <stdatomic.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TWIN(volatile int, _Atomic int) made;
static int value;
static void *work(void *unused)
{
    if (!made) {
        pthread_mutex_lock(&lock);
        if (!made) {
            value = 7;
            made = 1;
        }
        pthread_mutex_unlock(&lock);
    }
    sink(value);
    return unused;
}
int main(void) { two(work, work); return 0; }
