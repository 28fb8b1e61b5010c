// build: -O1 -pthread
// The main thread leaves by pthread_exit while others live: the process has a dead leader, and threads
// come and go, map files and read /proc all the same.
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

static void *leaf(void *argument)
{
    return argument;
}

static void *work(void *unused)
{
    usleep(20000); /* the leader is gone by now */
    for (long i = 0; i < 200; i++) {
        pthread_t next;
        void *result;
        CHECK(pthread_create(&next, NULL, leaf, (void *)i) == 0);
        CHECK(pthread_join(next, &result) == 0 && result == (void *)i);
    }
    int file = open("/proc/thread-self/maps", O_RDONLY);
    MUST(file);
    char text[64];
    CHECK(read(file, text, sizeof text) == sizeof text);
    close(file);
    file = open("/etc/passwd", O_RDONLY);
    MUST(file);
    char *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(map != MAP_FAILED && map[0] == 'r');
    exit(ok());
    return unused;
}

int main(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    pthread_exit(NULL);
}
