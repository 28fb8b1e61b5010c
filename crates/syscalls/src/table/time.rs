//! Clocks, timers, sleeping.

use crate::row::Part::{Always, Fixed, OnError};
use crate::row::Row;
use std::mem::size_of;

const TIME: u64 = size_of::<libc::timespec>() as u64;
/// `struct sigevent`.
const EVENT: u64 = size_of::<libc::sigevent>() as u64;
const TIMER: u64 = size_of::<libc::itimerspec>() as u64;
const ADJUSTMENT: u64 = size_of::<libc::timex>() as u64;

system_calls! {
    228 clock_gettime(Number, Output), writes Row::writes(&[Fixed(1, TIME)]);
    96 gettimeofday(Output, Output), writes Row::writes(&[Fixed(0, TIME), Fixed(1, 8)]);
    201 time(Output), writes Row::writes(&[Fixed(0, 8)]);
    229 clock_getres(Number, Output), writes Row::writes(&[Fixed(1, TIME)]);
    // What is left is written when a signal ends the sleep; also when the process is then stopped,
    // continued, and the sleep goes on to its end.
    35 nanosleep(Input(TIME), Output),
        writes Row::writes(&[Fixed(1, TIME), OnError(libc::EINTR, 1, TIME)]);
    230 clock_nanosleep(Number, Flags, Input(TIME), Output),
        writes Row::writes(&[Fixed(3, TIME), OnError(libc::EINTR, 3, TIME)]);
    36 getitimer(Number, Output), writes Row::writes(&[Fixed(1, TIMER)]);
    38 setitimer(Number, Input(TIMER), Output), writes Row::writes(&[Fixed(2, TIMER)]);
    222 timer_create(Number, Input(EVENT), Output), writes Row::writes(&[Fixed(2, 4)]);
    223 timer_settime(Number, Flags, Input(TIMER), Output), writes Row::writes(&[Fixed(3, TIMER)]);
    224 timer_gettime(Number, Output), writes Row::writes(&[Fixed(1, TIMER)]);
    286 timerfd_settime(Fd, Flags, Input(TIMER), Output), writes Row::writes(&[Fixed(3, TIMER)]);
    287 timerfd_gettime(Fd, Output), writes Row::writes(&[Fixed(1, TIMER)]);
    // Given back even if the adjustment is refused.
    159 adjtimex(Update(ADJUSTMENT)), writes Row::writes(&[Always(0, ADJUSTMENT)]);
    305 clock_adjtime(Number, Update(ADJUSTMENT)), writes Row::writes(&[Fixed(1, ADJUSTMENT)]);

    // Calls that write nothing into the memory of the caller.
    227 clock_settime(Number, Input(TIME));
    164 settimeofday(Input(TIME), Input(8));
    37 alarm(Size);
    225 timer_getoverrun(Number);
    226 timer_delete(Number);
    283 timerfd_create(Number, Flags);
    219 restart_syscall();
}
