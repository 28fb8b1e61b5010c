// Atomicity: an index is read to see whether there is room, and read again to write there; another thread moves it
// in between.
// build: -pthread
// learn: 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0
// fail: 60
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 128 };

static char buffer[SIZE];
static int buffer_index;

static void append(const char *text, int length, int pause_for) {
    if (buffer_index + length > SIZE)
        buffer_index = 0;
    for (int at = 0; at < pause_for; at++)
        sched_yield();
    memcpy(buffer + buffer_index, text, length); // FAULT: not the index that was looked at
    buffer_index += length;
}

struct job {
    const char *text;
    int pause_for;
};

static void *writer(void *job) {
    struct job mine = *(struct job *)job;
    for (int line = 0; line < 6; line++)
        append(mine.text, strlen(mine.text), mine.pause_for);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t one, two;
    int pause_for = atoi(argv[1]);
    struct job first = {"first", pause_for}, second = {"second", pause_for};
    pthread_create(&one, NULL, writer, &first);
    if (pause_for == 0)
        pthread_join(one, NULL);
    pthread_create(&two, NULL, writer, &second);
    if (pause_for != 0)
        pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", buffer_index);
    return argc != 2;
}
