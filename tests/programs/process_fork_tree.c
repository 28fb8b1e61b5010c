// build: -O1
// build: -O1 -static
// Fork trees, orphans, double-fork daemons, process groups, pids in the child, pipes between them,
// copy-on-write, buffered output not doubled, atexit handlers.
#include "check.h"
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
static int value = 1;
static int tree(int depth)
{
    int total = 1;
    if (!depth) return total;
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (!pid) _exit(tree(depth - 1));
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        total += WEXITSTATUS(status);
    }
    return total;
}
static void at_exit(void) { (void)!write(1, "atexit\n", 7); }
int main(void)
{
    printf("tree %d\n", tree(4));
    fflush(stdout);
    int p[2];
    MUST(pipe(p));
    pid_t pid = fork();
    if (!pid) {
        value = 2;
        pid_t ids[4] = {getpid(), getppid(), getpgrp(), getsid(0)};
        CHECK(write(p[1], ids, sizeof ids) == sizeof ids);
        _exit(0);
    }
    pid_t ids[4];
    CHECK(read(p[0], ids, sizeof ids) == sizeof ids);
    CHECK(ids[0] == pid && ids[1] == getpid() && ids[2] == getpgrp() && ids[3] == getsid(0));
    CHECK(waitpid(-1, NULL, 0) == pid && value == 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid = fork();                               /* a daemon: double fork, session of its own */
    if (!pid) {
        setsid();
        pid_t inner = fork();
        if (inner) _exit(0);
        CHECK(getsid(0) != getpid());
        CHECK(write(p[1], "D", 1) == 1);
        _exit(33);
    }
    char c;
    CHECK(read(p[0], &c, 1) == 1 && c == 'D');
    int status, ended = 0, sum = 0;
    while (waitpid(-1, &status, 0) > 0) ended++, sum += WEXITSTATUS(status);
    printf("reaped %d, sum %d, errno %s\n", ended, sum, strerrorname_np(errno));
    fflush(stdout);
    pid = fork();
    if (!pid) {
        MUST(prctl(PR_SET_PDEATHSIG, 9));
        int sig;
        prctl(PR_GET_PDEATHSIG, &sig);
        CHECK(sig == 9);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    pid = fork();
    if (!pid) {
        atexit(at_exit);
        printf("in the child\n");
        exit(0);
    }
    waitpid(pid, NULL, 0);
    return ok();
}
