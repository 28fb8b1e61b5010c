// build: -O1 -pthread
// Threads that read and write one file, each at its own offset of the descriptor they share.
#include "check.h"
#include <fcntl.h>
#include <pthread.h>

enum { THREADS = 3, LINES = 150 };
static int file;

static void *work(void *argument)
{
    char letter = (char)('a' + (long)argument);
    for (int i = 0; i < LINES; i++) {
        CHECK(write(file, &letter, 1) == 1);
        if (i % 10 == 0) {
            int other = open("shared", O_RDONLY);
            char text[64];
            MUST(other);
            MUST(pread(other, text, sizeof text, i));
            close(other);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    file = open("shared", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    MUST(file);
    for (long i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    char text[THREADS * LINES + 1] = "";
    CHECK(pread(file, text, THREADS * LINES, 0) == THREADS * LINES);
    puts(text);
    MUST(unlink("shared"));
    return ok();
}
