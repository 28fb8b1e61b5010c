// finds: data-race
// A structure is copied as a whole while another thread changes a part of it.
#include "twin.h"
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char shared[256], copy[256];
static void *change(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        shared[i * 7] = (char)i;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
static void *save(void *unused)
{
    for (int i = 0; i < 20; i++) {
        CLEAN(pthread_mutex_lock(&lock));
        memcpy(copy, shared, sizeof copy);
        CLEAN(pthread_mutex_unlock(&lock));
        sink(copy[i]);
    }
    return unused;
}
int main(void) { two(change, save); return 0; }
