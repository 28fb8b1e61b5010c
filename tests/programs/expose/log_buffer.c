// build: -O1 -g -pthread
// A log buffer and its length, which are updated one after the other, under a lock that the reader does
// not take. It needs a switch between two adjacent lines.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char buffer[4096];
static volatile unsigned length;

static void *append(void *unused)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&lock);
        unsigned at = length;
        length = at + 8;
        memcpy(buffer + at, "message\n", 8);
        pthread_mutex_unlock(&lock);
        for (volatile int work = 0; work < 500; work++)
            ;
    }
    return unused;
}

int main(void)
{
    pthread_t writer;
    int broken = 0;
    pthread_create(&writer, NULL, append, NULL);
    for (int i = 0; i < 50; i++) {
        unsigned now = length;
        if (now > 0 && buffer[now - 1] != '\n')
            broken = 1;
        for (volatile int work = 0; work < 700; work++)
            ;
    }
    pthread_join(writer, NULL);
    puts(broken ? "broken" : "ok");
    return broken;
}
