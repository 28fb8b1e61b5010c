// build: -O1 -Wall -Wno-unused-result
// Clocks, timers, sleeping, and signals that end a sleep.
#include "call.h"
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>

static struct timespec *seconds(long count) {
    struct timespec *time = room(sizeof *time);
    *time = (struct timespec){count, 7};
    return time;
}

int main(void) {
    call(SYS_clock_gettime, CLOCK_REALTIME, room(16));
    call(SYS_clock_gettime, CLOCK_MONOTONIC, edge(8));
    call(SYS_clock_gettime, 99, room(16));
    call(SYS_clock_getres, CLOCK_REALTIME, room(16));
    call(SYS_gettimeofday, room(16), room(8));
    call(SYS_time, room(8));
    call(SYS_nanosleep, seconds(0), room(16));
    interrupt_soon();
    call(SYS_nanosleep, seconds(9), room(16));
    interrupt_soon();
    call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, seconds(9), room(16));
    interrupt_soon();
    call(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, seconds(99999999999), room(16));
    struct itimerval *soon_again = room(sizeof *soon_again);
    *soon_again = (struct itimerval){.it_value = {100, 0}};
    call(SYS_setitimer, ITIMER_REAL, soon_again, room(32));
    call(SYS_setitimer, 77, soon_again, room(32));
    call(SYS_getitimer, ITIMER_REAL, room(32));
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    int *timer = room(4);
    call(SYS_timer_create, CLOCK_MONOTONIC, &event, timer);
    call(SYS_timer_settime, *timer, 0, soon_again, room(32));
    call(SYS_timer_gettime, *timer, room(32));
    call(SYS_timer_gettime, 4711, room(32));
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    call(SYS_timerfd_settime, fd, 0, soon_again, room(32));
    call(SYS_timerfd_gettime, fd, room(32));
    struct timex *state = room(sizeof *state);
    state->modes = 0;
    call(SYS_adjtimex, state);
    state = room(sizeof *state);
    memset(state, 0, 8);
    state->modes = 0x4000; // an interval of ticks that is not allowed
    state->tick = 1;
    call(SYS_adjtimex, state);
    state = room(sizeof *state);
    state->modes = 0;
    call(SYS_clock_adjtime, CLOCK_REALTIME, state);
    return 0;
}
