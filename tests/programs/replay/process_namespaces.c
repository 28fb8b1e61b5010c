// build: -O1
// Children in namespaces of their own, PID namespaces above all: there they are number 1, their
// children 2 and 3, and one of these makes another namespace. Nobody outside may mix them up.
#include "check.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>

static void say(const char *format, int depth, long a, long b)
{
    char text[120];
    int length = snprintf(text, sizeof text, format, depth, a, b);
    CHECK(write(1, text, (size_t)length) == length);
}

static void put(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);
    MUST(file);
    CHECK(write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
}

static int await(pid_t child)
{
    int status;
    MUST(child);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int inside(int depth)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    say("depth %d: number %ld at %ld\n", depth, getpid(), now.tv_nsec);
    CHECK(getpid() == 1);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            say("depth %d: child %ld of %ld\n", depth, getpid(), getppid());
            if (i == 1) execl("/bin/sh", "sh", "-c", "echo $$ executes; true & wait; exit 7", NULL);
            _exit(getpid());
        }
        CHECK(await(child) == (i == 1 ? 7 : child));
    }
    if (depth < 2) {
        MUST(unshare(CLONE_NEWPID));
        pid_t child = fork();
        if (child == 0) _exit(inside(depth + 1));
        CHECK(await(child) == depth + 2);
    }
    return depth + 1;
}

int main(void)
{
    int flags = CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWPID;
    if (geteuid() != 0) {
        char map[40];
        snprintf(map, sizeof map, "0 %d 1\n", geteuid());
        flags |= CLONE_NEWUSER;
        if (unshare(flags)) return ok();
        put("/proc/self/uid_map", map);
    } else {
        MUST(unshare(flags));
    }
    pid_t child = fork();
    if (child == 0) _exit(inside(0));
    CHECK(await(child) == 1);
    puts("ok");
}
