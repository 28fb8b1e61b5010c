//! Waiting for descriptors and futexes.

use crate::Known;
use crate::call::Call;
use crate::reads::Reading;
use crate::row::Part::{Always, Items};
use crate::row::{Row, sorted};

/// `struct epoll_event`, which is packed.
const EVENT: u64 = 12;
const TIME: u64 = 16;

system_calls! {
    7 poll(UpdateItems(8, 1), Size, Number), writes Row::after(|call| poll(call, 0));
    271 ppoll(UpdateItems(8, 1), Size, Update(TIME), Input(8), Size),
        writes Row::after(|call| poll(call, call.arguments[2]));
    23 select(Number, Update(VARIES), Update(VARIES), Update(VARIES), Update(TIME)),
        writes Row::after(select), reads select_reads;
    270 pselect6(Number, Update(VARIES), Update(VARIES), Update(VARIES), Update(TIME), Input(16)),
        writes Row::after(select), reads pselect_reads;
    232 epoll_wait(Fd, Output, Size, Number), writes Row::writes(&[Items(1, EVENT, 2)]);
    281 epoll_pwait(Fd, Output, Size, Number, Input(8), Size),
        writes Row::writes(&[Items(1, EVENT, 2)]);
    441 epoll_pwait2(Fd, Output, Size, Input(TIME), Input(8), Size),
        writes Row::writes(&[Items(1, EVENT, 2)]);
    // The upper bits are flags: private, and which clock.
    202 futex(Address, Flags, Size, Address, Address, Size),
        writes Row::select(1, 0x7f, FUTEX, &Row::NOTHING),
        reads futex_reads;

    // Calls that write nothing into the memory of the caller.
    213 epoll_create(Number);
    291 epoll_create1(Flags);
    233 epoll_ctl(Fd, Number, Fd, Input(VARIES)), reads interest_reads;
    284 eventfd(Size);
    290 eventfd2(Size, Flags);
    449 futex_waitv(InputItems(24, 1), Size, Flags, Input(TIME), Number), reads futex_waitv_reads;
    454 futex_wake(Address, Flags, Number, Flags);
    455 futex_wait(Address, Size, Flags, Flags, Input(TIME), Number), reads futex_wait_reads;
    456 futex_requeue(Input(48), Flags, Number, Number), reads futex_requeue_reads;
    273 set_robust_list(Address, Size);
}

/// Locks with priority inheritance are the kernel's to take and to mark, also when it then gives up.
const LOCKS_FIRST: Row = Row::writes(&[Always(0, 4)]);
const LOCKS_SECOND: Row = Row::writes(&[Always(4, 4)]);

const FUTEX: &[(u64, Row)] = &sorted([
    (libc::FUTEX_WAIT as u64, Row::NOTHING),
    (libc::FUTEX_WAKE as u64, Row::NOTHING),
    (libc::FUTEX_REQUEUE as u64, Row::NOTHING),
    (libc::FUTEX_CMP_REQUEUE as u64, Row::NOTHING),
    (libc::FUTEX_WAIT_BITSET as u64, Row::NOTHING),
    (libc::FUTEX_WAKE_BITSET as u64, Row::NOTHING),
    (libc::FUTEX_WAKE_OP as u64, LOCKS_SECOND),
    (libc::FUTEX_LOCK_PI as u64, LOCKS_FIRST),
    (libc::FUTEX_LOCK_PI2 as u64, LOCKS_FIRST),
    (libc::FUTEX_TRYLOCK_PI as u64, LOCKS_FIRST),
    (libc::FUTEX_UNLOCK_PI as u64, LOCKS_FIRST),
    (libc::FUTEX_WAIT_REQUEUE_PI as u64, LOCKS_SECOND),
    (libc::FUTEX_CMP_REQUEUE_PI as u64, Row::writes(&[Always(0, 4), Always(4, 4)])),
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

/// The sets, in whole words.
fn select_reads(reading: &mut Reading<'_>) {
    let [count, reading_set, writing, excepted, ..] = reading.arguments;
    let count = u64::from((count as i32).max(0).unsigned_abs());
    for set in [reading_set, writing, excepted] {
        reading.bits(set, count);
    }
}

/// The sets, and the mask that the last argument leads to.
fn pselect_reads(reading: &mut Reading<'_>) {
    select_reads(reading);
    let mask = reading.long(reading.arguments[5]);
    reading.parameters(mask, 8);
}

/// What is to be waited for; nobody looks at it when an interest is given up.
fn interest_reads(reading: &mut Reading<'_>) {
    let [_, operation, _, event, ..] = reading.arguments;
    if operation as i32 != libc::EPOLL_CTL_DEL {
        reading.parameters(event, EVENT);
    }
}

/// The words that are compared, and how long to wait.
fn futex_reads(reading: &mut Reading<'_>) {
    const OPERATION: i32 = 0x7f;
    let [first, operation, _, time, second, _] = reading.arguments;
    let operation = operation as i32 & OPERATION;
    if !matches!(operation, libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET | libc::FUTEX_REQUEUE) {
        let compared = if operation == libc::FUTEX_WAKE_OP { second } else { first };
        reading.parameters(compared, 4);
    }
    if matches!(
        operation,
        libc::FUTEX_WAIT
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_LOCK_PI
            | libc::FUTEX_LOCK_PI2
            | libc::FUTEX_WAIT_REQUEUE_PI
    ) {
        reading.parameters(time, TIME);
    }
}

/// The words that the `count` entries of 24 bytes from `entries` on are about.
fn waited_words(reading: &mut Reading<'_>, entries: u64, count: u64) {
    for index in 0..count {
        let word = reading.long(entries.wrapping_add(24 * index + 8));
        reading.parameters(word, 4);
    }
}

fn futex_waitv_reads(reading: &mut Reading<'_>) {
    const MOST: u64 = 128;
    let [entries, count, ..] = reading.arguments;
    waited_words(reading, entries, count.min(MOST));
}

fn futex_wait_reads(reading: &mut Reading<'_>) {
    reading.parameters(reading.arguments[0], 4);
}

/// The word of the first of two entries is compared.
fn futex_requeue_reads(reading: &mut Reading<'_>) {
    waited_words(reading, reading.arguments[0], 1);
}
