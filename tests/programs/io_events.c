// build: -O1 -pthread
// epoll (level, edge, oneshot), eventfd as semaphore and counter, timerfd, inotify, ppoll and pselect
// with masks, wake-ups from another thread.
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/timerfd.h>
static int ef;
static volatile sig_atomic_t got;
static void handler(int s) { (void)s; got++; }
static void *writer(void *a)
{
    for (int i = 0; i < 100; i++) {
        uint64_t one = 1;
        CHECK(write(ef, &one, 8) == 8);
        if (i % 10 == 0) usleep(500);
    }
    return a;
}
int main(void)
{
    int ep = epoll_create1(EPOLL_CLOEXEC);
    ef = eventfd(0, EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x1122334455667788}, ready[4];
    MUST(epoll_ctl(ep, EPOLL_CTL_ADD, ef, &event));
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, ef, &event) == -1 && errno == EEXIST);
    CHECK(epoll_wait(ep, ready, 4, 0) == 0);
    pthread_t t;
    CHECK(!pthread_create(&t, NULL, writer, NULL));
    uint64_t total = 0, value;
    while (total < 100) {
        CHECK(epoll_wait(ep, ready, 4, 10000) == 1 && ready[0].data.u64 == 0x1122334455667788);
        CHECK(read(ef, &value, 8) == 8);
        total += value;
    }
    pthread_join(t, NULL);
    CHECK(read(ef, &value, 8) == -1 && errno == EAGAIN);
    int p[2];
    MUST(pipe2(p, O_NONBLOCK));
    event.events = EPOLLIN | EPOLLET, event.data.fd = p[0];
    MUST(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &event));
    CHECK(write(p[1], "xy", 2) == 2);
    CHECK(epoll_wait(ep, ready, 4, 1000) == 1 && epoll_wait(ep, ready, 4, 0) == 0);
    event.events = EPOLLIN | EPOLLONESHOT;
    MUST(epoll_ctl(ep, EPOLL_CTL_MOD, p[0], &event));
    CHECK(epoll_wait(ep, ready, 4, 1000) == 1 && epoll_wait(ep, ready, 4, 0) == 0);
    int tf = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec when = {{0, 1000000}, {0, 1000000}};
    MUST(timerfd_settime(tf, 0, &when, NULL));
    uint64_t expirations = 0;
    while (expirations < 5) {
        CHECK(read(tf, &value, 8) == 8 && value >= 1);
        expirations += value;
    }
    int in = inotify_init1(IN_NONBLOCK);
    CHECK(inotify_add_watch(in, ".", IN_CREATE | IN_DELETE) > 0);
    close(open("made", O_CREAT | O_WRONLY, 0600));
    unlink("made");
    char buffer[4096];
    ssize_t n = read(in, buffer, sizeof buffer);
    for (char *at = buffer; at < buffer + n;) {
        struct inotify_event *e = (void *)at;
        printf("inotify %x %s\n", e->mask, e->name);
        at += sizeof *e + e->len;
    }
    struct sigaction act = {.sa_handler = handler};
    sigaction(SIGUSR1, &act, NULL);
    sigset_t usr, none;
    sigemptyset(&none), sigemptyset(&usr), sigaddset(&usr, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr, NULL);
    raise(SIGUSR1);
    struct timespec long_time = {20, 0};
    CHECK(ppoll(NULL, 0, &long_time, &none) == -1 && errno == EINTR && got == 1);
    raise(SIGUSR1);
    CHECK(pselect(0, NULL, NULL, NULL, &long_time, &none) == -1 && errno == EINTR && got == 2);
    raise(SIGUSR1);
    MUST(epoll_ctl(ep, EPOLL_CTL_DEL, ef, NULL));
    CHECK(epoll_pwait(ep, ready, 4, 20000, &none) == -1 && errno == EINTR && got == 3);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    CHECK(sigismember(&now, SIGUSR1) == 1);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(p[0], &set);
    struct timeval second = {1, 0};
    CHECK(select(p[0] + 1, &set, NULL, NULL, &second) == 1 && FD_ISSET(p[0], &set));
    return ok();
}
