// build: -O1
// Children of `clone` with a stack of their own and a copy of their parent's memory, as a browser
// forks: with and without a thread pointer of their own, one inside the other.
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define STACK 65536

static char *stack(void)
{
    char *memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void say(const char *format, int a, long b)
{
    char text[100];
    int length = snprintf(text, sizeof text, format, a, b);
    CHECK(write(1, text, (size_t)length) == length);
}

static int child(void *argument)
{
    int depth = (int)(long)argument;
    struct timespec now;
    char here[64];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(here, sizeof here, "%ld", now.tv_nsec);
    say("depth %d: %ld\n", depth, atol(here));
    if (depth == 0) return 3;
    char *inner = stack();
    pid_t pid = clone(child, inner + STACK, SIGCHLD, (void *)(long)(depth - 1));
    MUST(pid);
    int status;
    MUST(waitpid(pid, &status, 0));
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status) + 1;
}

int main(void)
{
    for (int depth = 0; depth < 4; depth++) {
        pid_t number = 0;
        char *memory = stack();
        int flags = SIGCHLD | CLONE_PARENT_SETTID | (depth & 1 ? CLONE_CHILD_SETTID : 0);
        pid_t pid = clone(child, memory + STACK, flags, (void *)(long)depth, &number, NULL, &number);
        MUST(pid);
        CHECK(number == pid);
        int status;
        MUST(waitpid(pid, &status, 0));
        say("ended %d with %ld\n", pid, WEXITSTATUS(status));
        CHECK(WEXITSTATUS(status) == depth + 3);
    }
    puts("ok");
}
