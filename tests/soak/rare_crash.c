// A real concurrency failure: a visitor checks that the user is logged in, greets, and then counts the
// visit; in between another thread may log the user out. Natively the visitor is done long before that,
// unless the machine delays it at just the wrong time.
#include <pthread.h>
#include <stdio.h>

struct user {
    int visits;
    const char *name;
};

static struct user ada = {0, "ada, countess of lovelace"};
static struct user *volatile logged_in = &ada;
static long greetings;

static long checksum(const char *name)
{
    long sum = 0;
    for (; *name; name++) sum = sum * 31 + *name;
    return sum;
}

static void *visit(void *unused)
{
    for (int i = 0; i < 200; i++) {
        if (logged_in != NULL) {
            greetings += checksum("welcome back, and hello again");
            logged_in->visits++;
        }
    }
    return unused;
}

static void *log_out(void *unused)
{
    volatile long think = 0;
    for (int i = 0; i < 60000; i++) think = think + i;
    logged_in = NULL;
    return unused;
}

int main(void)
{
    pthread_t visitor, door;
    pthread_create(&visitor, NULL, visit, NULL);
    pthread_create(&door, NULL, log_out, NULL);
    pthread_join(visitor, NULL);
    pthread_join(door, NULL);
    printf("%d visits, greeted %lx\n", ada.visits, greetings);
    return 0;
}
