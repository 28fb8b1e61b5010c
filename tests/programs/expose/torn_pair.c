// build: -O1 -g -pthread
// Two fields that belong together are saved while another thread is between updating the one and the
// other. Each is one word, so every single access is whole.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile long offset, count;
static volatile int done;

static void *load(void *unused)
{
    for (int i = 0; i < 200; i++) {
        for (volatile int work = 0; work < 100; work++)
            ;
        offset += 512;
        count += 1;
    }
    done = 1;
    return unused;
}

int main(void)
{
    pthread_t loader;
    int torn = 0;
    pthread_create(&loader, NULL, load, NULL);
    for (int saves = 0; saves < 3; saves++) {
        long saved_offset = offset, saved_count = count;
        torn |= saved_offset != saved_count * 512;
        usleep(100);
    }
    pthread_join(loader, NULL);
    puts(torn ? "torn" : "ok");
    return torn;
}
