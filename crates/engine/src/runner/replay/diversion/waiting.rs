//! Whose turn it is, and who waits: for a futex, or for a time. Time passes when everybody waits.

use super::super::contexts;
use super::finish;
use crate::control::DiversionEnd;
use crate::runner::context::Context;
use crate::runner::futex::operate;
use crate::runner::guest::{read_u32, read_u64};

/// Threads that wait, first come first.
#[derive(Default)]
pub struct Waiting(Vec<Waiter>);

struct Waiter {
    thread: i32,
    /// Address and bits of the futex.
    word: Option<(u64, u32)>,
    /// Until when at most.
    until: Option<u64>,
    /// What is answered if nothing else ends the wait.
    answer: i64,
}

const ANY: u32 = u32::MAX;

impl Waiting {
    fn has(&self, thread: i32) -> bool {
        self.0.iter().any(|waiter| waiter.thread == thread)
    }

    /// Ends the wait of at most `count` of those who wait for one of these bits; who that was.
    fn wake(&mut self, address: u64, count: u64, bits: u32) -> Vec<i32> {
        let mut woken = Vec::new();
        self.0.retain(|waiter| {
            let meant = waiter.word.is_some_and(|(at, mask)| at == address && mask & bits != 0);
            let wakes = meant && (woken.len() as u64) < count;
            if wakes {
                woken.push(waiter.thread);
            }
            !wakes
        });
        woken
    }

    /// Lets at most `count` of those who wait here wait there; how many that were.
    fn requeue(&mut self, address: u64, count: u64, to: u64) -> i64 {
        let here = self.0.iter_mut().filter_map(|waiter| waiter.word.as_mut());
        let moved = here.filter(|(at, _)| *at == address).take(count as usize);
        moved.map(|(at, _)| *at = to).count() as i64
    }

    /// Takes out the wait that ends first, and when that is.
    fn first_to_end(&mut self) -> Option<(u64, Waiter)> {
        let ends = self.0.iter().enumerate().filter_map(|(index, it)| Some((it.until?, index)));
        let (until, index) = ends.min()?;
        Some((until, self.0.remove(index)))
    }
}

/// Wakes at most `count` of those who wait for one of these bits; how many that were.
fn wake(context: &mut Context, address: u64, count: u64, bits: u32) -> i64 {
    let woken = context.replayer().diversion().waiting.wake(address, count, bits);
    for thread in &woken {
        contexts::answer(context, *thread, 0);
    }
    woken.len() as i64
}

/// The wait that ends first ends now. Whether there is one.
fn let_time_pass(context: &mut Context) -> bool {
    let diversion = context.replayer().diversion();
    let Some((until, waiter)) = diversion.waiting.first_to_end() else { return false };
    diversion.now = until.max(diversion.now);
    contexts::answer(context, waiter.thread, waiter.answer);
    true
}

/// Gives the next thread that can run its turn. Whether that is another one.
pub fn next(context: &mut Context) -> bool {
    let current = context.replayer().contexts.number();
    loop {
        let replayer = context.replayer();
        let in_turn = replayer.contexts.in_turn();
        let waiting = &replayer.diversion().waiting;
        let ready = in_turn.into_iter().find(|thread| !waiting.has(*thread));
        let parked = replayer.contexts.is_parked();
        match ready {
            Some(thread) if thread == current && !parked => return false,
            Some(thread) => {
                if !parked {
                    replayer.contexts.park();
                }
                contexts::switch(context, thread);
                return true;
            }
            None if let_time_pass(context) => {}
            None => finish(context, DiversionEnd::Stuck),
        }
    }
}

/// Lets another thread run.
pub fn yield_turn(context: &mut Context) {
    context.replayer().diversion().turn_ends = 0;
}

/// The running thread waits for so many nanoseconds.
pub fn sleep(context: &mut Context, nanoseconds: u64) {
    wait(context, None, Some(nanoseconds), 0);
}

/// The running thread waits for something that never comes.
pub fn for_ever(context: &mut Context) {
    wait(context, None, None, -i64::from(libc::EINTR));
}

fn wait(context: &mut Context, word: Option<(u64, u32)>, time: Option<u64>, answer: i64) {
    let thread = context.replayer().contexts.number();
    let until = time.map(|time| context.replayer().diversion().now.saturating_add(time));
    context.replayer().diversion().waiting.0.push(Waiter { thread, word, until, answer });
    context.replayer().contexts.park();
}

/// A thread has ended: whoever waits for that goes on.
pub fn ended(context: &mut Context, word: u64) {
    wake(context, word, 1, ANY);
}

/// The `timespec` at an address in nanoseconds.
pub fn duration(address: u64) -> Option<u64> {
    let (seconds, rest) = (read_u64(address)?, read_u64(address.wrapping_add(8))?);
    seconds.checked_mul(1_000_000_000)?.checked_add(rest)
}

/// Operations on futexes: the answer, if the thread does not wait for it.
pub fn futex(context: &mut Context, a: [u64; 6]) -> Option<i64> {
    const WAIT_BITSET: i32 = 9;
    const WAKE_BITSET: i32 = 10;
    let [address, operation, value, timeout, other, last] = a;
    let count = |number: u64| (number as i32).max(1) as u64;
    let command = operation as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    let answer = match command {
        libc::FUTEX_WAIT | WAIT_BITSET => {
            let bits = if command == WAIT_BITSET { last as u32 } else { ANY };
            match read_u32(address) {
                None => -i64::from(libc::EFAULT),
                Some(word) if word != value as u32 => -i64::from(libc::EAGAIN),
                Some(_) => {
                    // Times on a clock that stands still are near.
                    const SOON: u64 = 1_000_000;
                    let relative = command == libc::FUTEX_WAIT;
                    let time = (timeout != 0)
                        .then(|| duration(timeout).filter(|_| relative).unwrap_or(SOON));
                    wait(context, Some((address, bits)), time, -i64::from(libc::ETIMEDOUT));
                    return None;
                }
            }
        }
        libc::FUTEX_WAKE => wake(context, address, count(value), ANY),
        WAKE_BITSET => wake(context, address, count(value), last as u32),
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE => {
            let compares = command == libc::FUTEX_CMP_REQUEUE;
            match read_u32(address) {
                None => -i64::from(libc::EFAULT),
                Some(word) if compares && word != last as u32 => -i64::from(libc::EAGAIN),
                Some(_) => {
                    let woken = wake(context, address, value as u32 as u64, ANY);
                    let waiting = &mut context.replayer().diversion().waiting;
                    let moved = waiting.requeue(address, timeout as u32 as u64, other);
                    // Without a comparison only those who were woken are told of.
                    if compares { woken + moved } else { woken }
                }
            }
        }
        libc::FUTEX_WAKE_OP => match operate(other, last as u32) {
            None => -i64::from(libc::EFAULT),
            Some(holds) => {
                let woken = wake(context, address, count(value), ANY);
                woken + if holds { wake(context, other, count(timeout), ANY) } else { 0 }
            }
        },
        _ => {
            context.replayer().diversion().note("refused: futex with priority inheritance".into());
            -i64::from(libc::ENOSYS)
        }
    };
    Some(answer)
}
