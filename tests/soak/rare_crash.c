// A real concurrency failure: `user` is checked and then used, and between the two another thread may
// log the user out. The window is a few instructions wide, so the program nearly always ends well.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct user {
    int visits;
    char name[20];
};

struct session {
    struct user *volatile user;
    long hits;
};

static struct user ada = {0, "ada"};
static struct session session = {&ada, 0};
static volatile int busy = 1;

static long checksum(const char *name)
{
    long sum = 0;
    for (; *name; name++) sum = sum * 31 + *name;
    return sum;
}

static void *visit(void *rounds)
{
    for (long i = 0; i < (long)rounds; i++) {
        if (session.user != NULL) {
            session.hits++;
            session.hits += checksum(session.user->name) & 1;
        }
    }
    busy = 0;
    return NULL;
}

static void *log_out_and_in(void *unused)
{
    volatile long think = 0;
    while (busy) {
        for (int i = 0; i < 30000; i++) think = think + i;
        session.user = NULL;
        session.user = &ada;
    }
    return unused;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 2000;
    pthread_t visitor, door;
    pthread_create(&door, NULL, log_out_and_in, NULL);
    pthread_create(&visitor, NULL, visit, (void *)rounds);
    pthread_join(visitor, NULL);
    pthread_join(door, NULL);
    printf("%ld hits\n", session.hits);
    return 0;
}
