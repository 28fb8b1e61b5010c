// build: -O1 -g -pthread
// No data race: a string is asked for its length and then for its characters, each under its lock, and
// another thread erases it in between. The copy takes characters that are not there any more.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    pthread_mutex_t lock;
    int length;
    char characters[16];
};

static struct text shared = {PTHREAD_MUTEX_INITIALIZER, 3, "abc"};

static int length(struct text *text)
{
    pthread_mutex_lock(&text->lock);
    int length = text->length;
    pthread_mutex_unlock(&text->lock);
    return length;
}

static void copy(struct text *text, char *out, int count)
{
    pthread_mutex_lock(&text->lock);
    if (count > text->length)
        abort();
    memcpy(out, text->characters, count);
    pthread_mutex_unlock(&text->lock);
}

static void *erase(void *unused)
{
    pthread_mutex_lock(&shared.lock);
    shared.length = 0;
    pthread_mutex_unlock(&shared.lock);
    return unused;
}

int main(void)
{
    pthread_t eraser;
    char out[16] = "";
    pthread_create(&eraser, NULL, erase, NULL);
    copy(&shared, out, length(&shared));
    pthread_join(eraser, NULL);
    puts("ok");
    return 0;
}
