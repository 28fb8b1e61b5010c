//! Clocks, timers, sleeping.

use super::row::Part::{Always, Fixed, OnError};
use super::row::Row;
use base::system_call::number as n;
use std::mem::size_of;

const TIME: u64 = size_of::<libc::timespec>() as u64;
const TIMER: u64 = size_of::<libc::itimerspec>() as u64;
const ADJUSTMENT: u64 = size_of::<libc::timex>() as u64;

pub const ROWS: &[(u64, Row)] = &[
    (n::clock_gettime, Row::Writes(&[Fixed(1, TIME)])),
    (n::gettimeofday, Row::Writes(&[Fixed(0, TIME), Fixed(1, 8)])),
    (n::time, Row::Writes(&[Fixed(0, 8)])),
    (n::clock_getres, Row::Writes(&[Fixed(1, TIME)])),
    // What is left is written when a signal ends the sleep; also when the process is then stopped,
    // continued, and the sleep goes on to its end.
    (n::nanosleep, Row::Writes(&[Fixed(1, TIME), OnError(libc::EINTR, 1, TIME)])),
    (n::clock_nanosleep, Row::Writes(&[Fixed(3, TIME), OnError(libc::EINTR, 3, TIME)])),
    (n::getitimer, Row::Writes(&[Fixed(1, TIMER)])),
    (n::setitimer, Row::Writes(&[Fixed(2, TIMER)])),
    (n::timer_create, Row::Writes(&[Fixed(2, 4)])),
    (n::timer_settime, Row::Writes(&[Fixed(3, TIMER)])),
    (n::timer_gettime, Row::Writes(&[Fixed(1, TIMER)])),
    (n::timerfd_settime, Row::Writes(&[Fixed(3, TIMER)])),
    (n::timerfd_gettime, Row::Writes(&[Fixed(1, TIMER)])),
    // Given back even if the adjustment is refused.
    (n::adjtimex, Row::Writes(&[Always(0, ADJUSTMENT)])),
    (n::clock_adjtime, Row::Writes(&[Fixed(1, ADJUSTMENT)])),
];

pub const NOTHING: &[u64] = &[
    n::clock_settime,
    n::settimeofday,
    n::alarm,
    n::timer_getoverrun,
    n::timer_delete,
    n::timerfd_create,
    n::restart_syscall,
];
