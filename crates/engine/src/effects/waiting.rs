//! Waiting for descriptors and futexes.

use super::Known;
use super::call::Call;
use super::row::Part::{Always, Items};
use super::row::{Row, sorted};
use base::system_call::number as n;

/// `struct epoll_event`, which is packed.
const EVENT: u64 = 12;
const TIME: u64 = 16;

pub const ROWS: &[(u64, Row)] = &[
    (n::poll, Row::after(|call| poll(call, 0))),
    (n::ppoll, Row::after(|call| poll(call, call.arguments[2]))),
    (n::select, Row::after(select)),
    (n::pselect6, Row::after(select)),
    (n::epoll_wait, Row::Writes(&[Items(1, EVENT, 2)])),
    (n::epoll_pwait, Row::Writes(&[Items(1, EVENT, 2)])),
    (n::epoll_pwait2, Row::Writes(&[Items(1, EVENT, 2)])),
    (
        n::futex,
        // The upper bits are flags: private, and which clock.
        Row::Choice { argument: 1, bits: 0x7f, rows: FUTEX, others: &Row::Nothing },
    ),
];

pub const NOTHING: &[u64] = &[
    n::epoll_create,
    n::epoll_create1,
    n::epoll_ctl,
    n::eventfd,
    n::eventfd2,
    n::futex_waitv,
    n::futex_wake,
    n::futex_wait,
    n::futex_requeue,
    n::set_robust_list,
];

/// Locks with priority inheritance are the kernel's to take and to mark, also when it then gives up.
const LOCKS_FIRST: Row = Row::Writes(&[Always(0, 4)]);
const LOCKS_SECOND: Row = Row::Writes(&[Always(4, 4)]);

const FUTEX: &[(u64, Row)] = &sorted([
    (libc::FUTEX_WAIT as u64, Row::Nothing),
    (libc::FUTEX_WAKE as u64, Row::Nothing),
    (libc::FUTEX_REQUEUE as u64, Row::Nothing),
    (libc::FUTEX_CMP_REQUEUE as u64, Row::Nothing),
    (libc::FUTEX_WAIT_BITSET as u64, Row::Nothing),
    (libc::FUTEX_WAKE_BITSET as u64, Row::Nothing),
    (libc::FUTEX_WAKE_OP as u64, LOCKS_SECOND),
    (libc::FUTEX_LOCK_PI as u64, LOCKS_FIRST),
    (libc::FUTEX_LOCK_PI2 as u64, LOCKS_FIRST),
    (libc::FUTEX_TRYLOCK_PI as u64, LOCKS_FIRST),
    (libc::FUTEX_UNLOCK_PI as u64, LOCKS_FIRST),
    (libc::FUTEX_WAIT_REQUEUE_PI as u64, LOCKS_SECOND),
    (libc::FUTEX_CMP_REQUEUE_PI as u64, Row::Writes(&[Always(0, 4), Always(4, 4)])),
]);

/// What happened at each descriptor is written even if a signal ends the wait, and so is the time
/// that is left.
fn poll(call: &mut Call<'_>, time: u64) -> Known {
    const DESCRIPTOR: u64 = 8;
    if !call.is(libc::EINVAL) {
        let [descriptors, count, ..] = call.arguments;
        call.put(descriptors, DESCRIPTOR * (count & 0xffff_ffff));
    }
    call.put(time, TIME);
    Known::Yes
}

/// The sets are written if the wait was not cut short; the time that is left, always.
fn select(call: &mut Call<'_>) -> Known {
    /// Up to here the kernel is known to have written all that is asked for, if it is there.
    const USUAL: u64 = 1024;
    let [count, reading, writing, excepted, time, _] = call.arguments;
    if call.wrote() {
        // The kernel looks at no more descriptors than the process can have, which is not known here.
        let count = u64::from((count as i32).max(0).unsigned_abs());
        let length = count.div_ceil(64) * 8;
        for set in [reading, writing, excepted] {
            if count > USUAL { call.put_mapped(set, length) } else { call.put(set, length) }
        }
    }
    call.put(time, TIME);
    Known::Yes
}
