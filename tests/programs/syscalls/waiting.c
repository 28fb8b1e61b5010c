// build: -O1 -Wall -Wno-unused-result
// Waiting for descriptors, futexes and signals; also where a signal ends the wait.
#include "call.h"
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

static void *time_of(long seconds) {
    int64_t *time = room(16);
    time[0] = seconds, time[1] = 1000;
    return time;
}

static fd_set *set(int fd) {
    fd_set *set = room(sizeof *set);
    FD_ZERO(set);
    FD_SET(fd, set);
    return set;
}

static struct pollfd *polled(int first, int second) {
    struct pollfd *fds = room(3 * sizeof *fds);
    fds[0] = (struct pollfd){first, POLLIN, 0x7a7a};
    fds[1] = (struct pollfd){second, POLLIN | POLLOUT, 0x7a7a};
    fds[2] = (struct pollfd){-1, POLLIN, 0x7a7a};
    return fds;
}

static void descriptors(int idle, int ready) {
    call(SYS_poll, polled(idle, ready), 3, 10);
    call(SYS_poll, polled(idle, 999), 3, 10);
    call(SYS_poll, polled(idle, idle), 2, 10);
    interrupt_soon();
    call(SYS_poll, polled(idle, idle), 2, 9000);
    call(SYS_ppoll, polled(idle, ready), 3, time_of(9), NULL, 8);
    call(SYS_ppoll, polled(idle, idle), 1, time_of(0), NULL, 8);
    interrupt_soon();
    call(SYS_ppoll, polled(idle, idle), 2, time_of(9), NULL, 8);
    call(SYS_poll, edge(12), 3, 10);
    call(SYS_select, 64, set(idle), set(ready), set(idle), time_of(9));
    call(SYS_select, 64, set(idle), NULL, NULL, time_of(0));
    interrupt_soon();
    call(SYS_select, 64, set(idle), NULL, NULL, time_of(9));
    call(SYS_select, 1024, set(idle), set(ready), NULL, time_of(9));
    call(SYS_select, -1, NULL, NULL, NULL, time_of(0));
    fd_set *wide = room(200000);
    memset(wide, 0, 200000);
    FD_SET(ready, wide);
    call(SYS_select, 1 << 20, NULL, wide, NULL, NULL);
    call(SYS_pselect6, 64, set(idle), set(ready), NULL, time_of(9), NULL);
    interrupt_soon();
    call(SYS_pselect6, 64, set(idle), NULL, NULL, time_of(9), NULL);
}

static void events(int idle, int ready) {
    int fd = epoll_create1(0);
    epoll_ctl(fd, EPOLL_CTL_ADD, ready, &(struct epoll_event){EPOLLOUT, {.u64 = 0x1234567890}});
    epoll_ctl(fd, EPOLL_CTL_ADD, idle, &(struct epoll_event){EPOLLIN, {.u64 = 9}});
    call(SYS_epoll_wait, fd, room(120), 10, 10);
    call(SYS_epoll_wait, fd, edge(6), 10, 10);
    call(SYS_epoll_pwait, fd, room(120), 10, 10, NULL, 8);
    call(SYS_epoll_pwait2, fd, room(120), 10, time_of(1), NULL, 8);
    epoll_ctl(fd, EPOLL_CTL_DEL, ready, NULL);
    interrupt_soon();
    call(SYS_epoll_wait, fd, room(120), 10, 9000);
    int counter = eventfd(5, 0);
    call(SYS_read, counter, room(8), 8);
    int watch = inotify_init();
    inotify_add_watch(watch, "/tmp", IN_CREATE | IN_DELETE);
    char name[] = "/tmp/whydunit-watched-XXXXXX";
    close(mkstemp(name));
    unlink(name);
    call(SYS_read, watch, room(400), 400);
}

static void signals(void) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    call(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, room(8), 8);
    call(SYS_rt_sigprocmask, 99, &blocked, room(8), 8);
    kill(getpid(), SIGUSR1);
    call(SYS_rt_sigpending, room(8), 8);
    call(SYS_rt_sigpending, room(8), 4);
    call(SYS_rt_sigtimedwait, &blocked, room(128), time_of(1), 8);
    call(SYS_rt_sigtimedwait, &blocked, room(128), time_of(0), 8);
    int fd = signalfd(-1, &blocked, 0);
    kill(getpid(), SIGUSR1);
    call(SYS_read, fd, room(128), 128);
    call(SYS_rt_sigaction, SIGALRM, NULL, room(32), 8);
    call(SYS_rt_sigaction, 99, NULL, room(32), 8);
    call(SYS_rt_sigaction, SIGALRM, NULL, edge(12), 8);
    stack_t stack = {room(16384), 0, 16384};
    call(SYS_sigaltstack, &stack, room(24));
    call(SYS_sigaltstack, NULL, room(24));
}

static void locks(void) {
    unsigned *lock = number(0), *other = number(0);
    call(SYS_futex, lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
    call(SYS_futex, lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0); // held by itself
    call(SYS_futex, lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
    call(SYS_futex, lock, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0);
    call(SYS_futex, lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
    *lock = 0;
    call(SYS_futex, lock, 13 /* FUTEX_LOCK_PI2 */, 0, NULL, NULL, 0);
    *other = 3;
    call(SYS_futex, lock, FUTEX_WAKE_OP, 1, 1, other, FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 0));
    *other = 0;
    call(SYS_futex, lock, FUTEX_CMP_REQUEUE_PI, 1, 1, other, *lock);
    call(SYS_futex, number(1), FUTEX_WAIT_REQUEUE_PI, 1, time_of(1), other, 0);
    call(SYS_futex, lock, FUTEX_WAIT, 77, NULL, NULL, 0);

    // Somebody waits for a lock that is held here, and is given it.
    unsigned *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    call(SYS_futex, shared, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
    if (fork() == 0) {
        call(SYS_futex, shared, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
        call(SYS_futex, shared, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
        _exit(0);
    }
    while (!(*(volatile unsigned *)shared & FUTEX_WAITERS)) usleep(1000);
    call(SYS_futex, shared, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
    wait(NULL);
}

// One process moves another from a plain futex to a lock.
static void requeue(void) {
    unsigned *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned *lock = shared + 8;
    if (fork() == 0) {
        struct timespec *until = room(sizeof *until);
        clock_gettime(CLOCK_MONOTONIC, until);
        until->tv_sec += 5;
        call(SYS_futex, shared, FUTEX_WAIT_REQUEUE_PI, 0, until, lock, 0);
        call(SYS_futex, lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
        _exit(0);
    }
    for (int turn = 0; turn < 2000; turn++) {
        if (syscall(SYS_futex, shared, FUTEX_CMP_REQUEUE_PI, 1, 1, lock, 0) > 0) break;
        usleep(1000);
    }
    wait(NULL);
}

int main(void) {
    int idle[2], ready[2];
    pipe(idle);
    pipe(ready);
    descriptors(idle[0], ready[1]);
    events(idle[0], ready[1]);
    signals();
    locks();
    requeue();
    return 0;
}
