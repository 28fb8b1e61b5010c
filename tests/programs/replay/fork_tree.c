// build: -O1
// A tree of forks, two and three deep; each prints its number, and parents print the order in which
// their children ended.
#include "check.h"
#include <sys/wait.h>
#include <time.h>

static void say(const char *format, int depth, int a, int b)
{
    char text[100];
    int length = snprintf(text, sizeof text, format, depth, a, b);
    CHECK(write(1, text, (size_t)length) == length);
}

static int grow(int depth)
{
    pid_t children[3];
    int count = 3 - depth;
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        MUST(children[i]);
        if (children[i] == 0) {
            struct timespec now;
            clock_gettime(CLOCK_MONOTONIC, &now);
            for (volatile long spin = now.tv_nsec % 50000; spin > 0; spin--) {}
            _exit(grow(depth + 1));
        }
    }
    for (int i = 0; i < count; i++) {
        int status;
        pid_t ended = wait(&status);
        MUST(ended);
        CHECK(WIFEXITED(status));
        say("depth %d: %d ended with %d\n", depth, ended, WEXITSTATUS(status));
    }
    say("depth %d: I am %d of %d\n", depth, getpid(), getppid());
    return getpid() % 50;
}

int main(void)
{
    grow(0);
    return ok();
}
