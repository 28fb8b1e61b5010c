// depth: 2, a race
// Double-checked locking: the pointer is there before what it points to is filled in.
#include "expose.h"
struct table { int size; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table *volatile table;
static int sizes[2];
static int size(void)
{
    if (!table) {
        pthread_mutex_lock(&lock);
        if (!table) {
            table = calloc(1, sizeof *table);
            table->size = 16;
        }
        pthread_mutex_unlock(&lock);
    }
    return table->size;
}
static void *soon(void *unused) { sizes[0] = size(); return unused; }
static void *late(void *unused) { work(2 * LONG); sizes[1] = size(); return unused; }
int main(void) { TOGETHER(soon, late); return verdict(sizes[0] != 16 || sizes[1] != 16); }
