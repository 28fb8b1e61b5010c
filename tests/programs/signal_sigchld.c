// build: -O1
// SIGCHLD with siginfo, SA_NOCLDWAIT, SA_NOCLDSTOP, stopped and continued children, SIGPIPE by a
// closed pipe (handled, ignored), SIGXFSZ, SIGURG-free waits.
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
static volatile sig_atomic_t code, status, child, pipes, sizes;
static void on_child(int s, siginfo_t *si, void *uc)
{
    (void)s, (void)uc;
    code = si->si_code, status = si->si_status, child = si->si_pid;
}
static void on_pipe(int s) { (void)s; pipes++; }
static void on_size(int s) { (void)s; sizes++; }
static void await(int wanted)
{
    sigset_t chld, old;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, &old);
    while (code != wanted) sigsuspend(&old);
    sigprocmask(SIG_SETMASK, &old, NULL);
    code = 0;
}
int main(void)
{
    struct sigaction act = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO};
    sigaction(SIGCHLD, &act, NULL);
    int gate[2];
    char byte = 0;
    MUST(pipe(gate));
    pid_t pid = fork();
    if (!pid) {
        raise(SIGSTOP);
        // Not before its parent has seen that it goes on.
        CHECK(read(gate[0], &byte, 1) == 1);
        _exit(5);
    }
    await(CLD_STOPPED);
    CHECK(child == pid && status == SIGSTOP);
    int st;
    CHECK(waitpid(pid, &st, WUNTRACED) == pid && WIFSTOPPED(st) && WSTOPSIG(st) == SIGSTOP);
    kill(pid, SIGCONT);
    while (waitpid(pid, &st, WCONTINUED) < 0) CHECK(errno == EINTR);
    CHECK(WIFCONTINUED(st));
    CHECK(write(gate[1], &byte, 1) == 1);
    while (waitpid(pid, &st, 0) < 0) CHECK(errno == EINTR);
    CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 5);
    CHECK(status == 5 || status == SIGCONT);
    pid = fork();
    if (!pid) for (;;) pause();
    code = 0;
    kill(pid, SIGKILL);
    await(CLD_KILLED);
    CHECK(status == SIGKILL && child == pid);
    siginfo_t info;
    CHECK(waitid(P_PID, pid, &info, WEXITED | WNOWAIT) == 0 && info.si_code == CLD_KILLED);
    CHECK(waitid(P_PID, pid, &info, WEXITED) == 0);
    act.sa_flags |= SA_NOCLDWAIT;
    sigaction(SIGCHLD, &act, NULL);
    pid = fork();
    if (!pid) _exit(1);
    while (waitpid(pid, &st, 0) == -1 && errno == EINTR) {}
    CHECK(errno == ECHILD);
    signal(SIGPIPE, on_pipe);
    int p[2];
    MUST(pipe(p));
    close(p[0]);
    CHECK(write(p[1], "x", 1) == -1 && errno == EPIPE && pipes == 1);
    signal(SIGPIPE, SIG_IGN);
    CHECK(write(p[1], "x", 1) == -1 && errno == EPIPE && pipes == 1);
    signal(SIGXFSZ, on_size);
    struct rlimit limit = {100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    int fd = open("big", O_CREAT | O_WRONLY, 0600);
    char text[200] = {0};
    CHECK(write(fd, text, 200) == 100);
    CHECK(write(fd, text, 200) == -1 && errno == EFBIG && sizes == 1);
    return ok();
}
