// build: -O1
// vfork and execve: a chain of programs, each the same file with one argument less; a posix_spawn in
// between, and an execve that fails.
#include "check.h"
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static void wait_for(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
    int depth = argc > 1 ? atoi(argv[1]) : 4;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("depth %d pid %d at %ld\n", depth, getpid(), now.tv_nsec);
    fflush(stdout);
    if (depth == 0) return 0;
    char next[8];
    snprintf(next, sizeof next, "%d", depth - 1);
    char *words[] = {argv[0], next, NULL};
    if (depth % 2) {
        pid_t child = vfork();
        if (child == 0) {
            execve("/nonexistent/program", words, environ);
            execve("/proc/self/exe", words, environ);
            _exit(99);
        }
        MUST(child);
        wait_for(child);
    } else {
        pid_t child;
        CHECK(posix_spawn(&child, argv[0], NULL, NULL, words, environ) == 0);
        wait_for(child);
    }
    if (argc > 1) return 0;
    char *last[] = {argv[0], "0", NULL};
    execv(argv[0], last);
    return 1;
}
