// build: -O1 -pthread
// A pointer is published before what it points to is complete; readers print what they caught.
#include "check.h"
#include <pthread.h>

struct message { volatile int a, b, sum; };
static struct message *volatile current;
static volatile int done;
static long torn, whole, nothing;

static void *reader(void *unused)
{
    (void)unused;
    while (!done) {
        struct message *seen = current;
        if (!seen) nothing++;
        else if (seen->a + seen->b != seen->sum) torn++;
        else whole++;
    }
    return NULL;
}

int main(void)
{
    static struct message room[2];
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, reader, NULL) == 0);
    for (int i = 0; i < 60000; i++) {
        struct message *fresh = &room[i & 1];
        fresh->a = i;
        current = fresh;
        fresh->b = i * 3;
        fresh->sum = fresh->a + fresh->b;
        if (i % 1000 == 0) usleep(10);
    }
    done = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    printf("torn %ld whole %ld nothing %ld\n", torn, whole, nothing);
    return ok();
}
