// build: -O1 -pthread
// SA_RESTART against EINTR, for calls that block: read on a pipe, nanosleep, poll, select, futex
// wait, sem_wait, wait4, accept, epoll_wait, sigsuspend. A helper process sends the signal until
// the call has ended, so nothing depends on timing.
#include "check.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
static volatile sig_atomic_t count;
static int refill = -1;
static void handler(int s)
{
    (void)s;
    if (++count == 3 && refill >= 0 && write(refill, "x", 1) < 0) _exit(9);
}
static pid_t pester(void)
{
    pid_t parent = getpid(), pid = fork();
    if (!pid) {
        struct timespec pause = {0, 5000000};
        for (int i = 0; i < 4000; i++) {
            nanosleep(&pause, NULL);
            if (kill(parent, SIGUSR1)) _exit(0);
        }
        _exit(0);
    }
    return pid;
}
static void unpester(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0) CHECK(errno == EINTR);
}
#define TRY(name, flags, call)                                                             \
    do {                                                                                   \
        struct sigaction act = {.sa_handler = handler, .sa_flags = flags};                 \
        sigaction(SIGUSR1, &act, NULL);                                                    \
        count = 0;                                                                         \
        pid_t who = pester();                                                              \
        errno = 0;                                                                         \
        long result = (long)(call);                                                        \
        int error = errno;                                                                 \
        unpester(who);                                                                     \
        printf("%-24s %ld %s, handled %s\n", name, result, result < 0 ? strerrorname_np(error) : "-", \
               count > 2 ? "3 or more" : count ? "some" : "none");                         \
    } while (0)
/* One signal ends the call, or it is one that never restarts. */
#define ONE(name, flags, call)                                                             \
    do {                                                                                   \
        struct sigaction act = {.sa_handler = handler, .sa_flags = flags};                 \
        sigaction(SIGUSR1, &act, NULL);                                                    \
        count = 0;                                                                         \
        pid_t who = pester();                                                              \
        long result = (long)(call);                                                        \
        int error = errno;                                                                 \
        CHECK(count > 0);                                                                  \
        unpester(who);                                                                     \
        printf("%-24s %ld %s\n", name, result, strerrorname_np(error));                    \
    } while (0)
int main(void)
{
    int p[2];
    char c;
    MUST(pipe(p));
    struct pollfd wait = {p[0], POLLIN, 0};
    setvbuf(stdout, NULL, _IONBF, 0);
    refill = p[1];
    TRY("read, restart", SA_RESTART, read(p[0], &c, 1));
    refill = -1;
    struct timespec ten = {10, 0};
    ONE("read", 0, read(p[0], &c, 1));
    ONE("nanosleep", 0, nanosleep(&ten, NULL));
    ONE("nanosleep, restart", SA_RESTART, nanosleep(&ten, NULL));
    ONE("poll", 0, poll(&wait, 1, 10000));
    ONE("poll, restart", SA_RESTART, poll(&wait, 1, 10000));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(p[0], &set);
    ONE("select, restart", SA_RESTART, select(p[0] + 1, &set, NULL, NULL, NULL));
    int word = 0;
    ONE("futex", 0, syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0));
    ONE("futex, timed, restart", SA_RESTART, syscall(SYS_futex, &word, FUTEX_WAIT, 0, &ten, NULL, 0));
    sem_t sem;
    sem_init(&sem, 0, 0);
    ONE("sem_wait", 0, sem_wait(&sem));
    int ep = epoll_create1(0);
    struct epoll_event event;
    ONE("epoll_wait, restart", SA_RESTART, epoll_wait(ep, &event, 1, -1));
    ONE("pause, restart", SA_RESTART, pause());
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name = {AF_UNIX, "listener"};
    MUST(bind(listener, (void *)&name, sizeof name));
    MUST(listen(listener, 1));
    ONE("accept", 0, accept(listener, NULL, NULL));
    pid_t idle = fork();
    if (!idle) for (;;) pause();
    int status;
    ONE("wait4", 0, waitpid(idle, &status, 0));
    kill(idle, SIGKILL);
    while (waitpid(idle, &status, 0) < 0) CHECK(errno == EINTR);
    struct timespec left = {0, 0};
    ONE("nanosleep, remainder", 0, nanosleep(&ten, &left));
    CHECK(left.tv_sec >= 5 && left.tv_sec < 10);
    return ok();
}
