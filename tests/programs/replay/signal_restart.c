// build: -O1
// A timer interrupts read, nanosleep, poll and wait, with and without SA_RESTART; the child that ends
// the wait comes at its own time.
#include "check.h"
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static volatile int alarms;

static void count(int number)
{
    (void)number;
    alarms++;
}

static void set(int flags, long microseconds)
{
    struct sigaction action = {.sa_handler = count, .sa_flags = flags};
    struct itimerval timer = {.it_value = {0, microseconds}, .it_interval = {0, microseconds}};
    MUST(sigaction(SIGALRM, &action, NULL));
    MUST(setitimer(ITIMER_REAL, &timer, NULL));
}

int main(void)
{
    int ends[2];
    char byte;
    MUST(pipe(ends));
    set(0, 1500);
    CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR);
    struct timespec nap = {0, 5000000}, left = {0, 0};
    int interruptions = 0;
    while (nanosleep(&nap, &left) != 0) {
        CHECK(errno == EINTR);
        interruptions++;
        nap = left;
    }
    printf("nanosleep interrupted %d times, %ld left at last\n", interruptions, left.tv_nsec);
    struct pollfd entry = {ends[0], POLLIN, 0};
    CHECK(poll(&entry, 1, 1000) == -1 && errno == EINTR);
    set(SA_RESTART, 700);
    pid_t child = fork();
    MUST(child);
    if (child == 0) {
        struct timespec wait = {0, 6000000};
        nanosleep(&wait, NULL);
        _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
    }
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x');
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    printf("%d alarms\n", alarms);
    return ok();
}
