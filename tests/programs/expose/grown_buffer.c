// depth: 2, no race
// The buffer is taken under the lock and used after it; another thread grows it, which moves it.
#include "expose.h"
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *buffer;
static int size = 16;
static char seen = 'a';
static void *use(void *unused)
{
    pthread_mutex_lock(&lock);
    char *own = buffer;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    seen = own[0];
    pthread_mutex_unlock(&lock);
    return unused;
}
static void *grow(void *unused)
{
    work(LONG);
    pthread_mutex_lock(&lock);
    char *larger = malloc(size * 1024);
    memcpy(larger, buffer, size);
    memset(buffer, '?', size);
    free(buffer);
    buffer = larger;
    size *= 1024;
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void)
{
    buffer = malloc(size);
    memset(buffer, 'a', size);
    TOGETHER(use, grow);
    return verdict(seen != 'a');
}
