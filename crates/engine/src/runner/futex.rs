//! Futexes of the guest while it is recorded. The kernel would choose who is woken and when they come
//! back; here both follow from what the guest does, so that a seed is a schedule.
//!
//! Whoever waits sleeps in the kernel, but on a word of its own and outside of the queue for the
//! baton; whoever wakes has the baton and puts them into that queue. Memory that other processes
//! share is left to the kernel, and so are futexes with priority inheritance.

use super::context::Context;
use super::cpu;
use super::engine::Engine;
use super::engine::dispatch::{drop_baton, resume};
use super::guest::read_u32;
use super::record::waits;
use super::signal::frame::GuestMemory;
use super::syscall::Outcome;
use super::thread::SharedState;
use super::{baton, guest};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Who waits for what, first come first.
#[derive(Default)]
pub struct Futexes(VecDeque<Waiter>);

struct Waiter {
    address: u64,
    bits: u32,
    thread: Arc<SharedState>,
}

const COMMAND: i32 = 0x7f;
const ANY: u32 = u32::MAX;

impl Futexes {
    /// In the child of a fork nobody waits.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Wakes at most `count` of those who wait for one of these bits; how many that were.
    fn wake(&mut self, address: u64, count: u64, bits: u32) -> i64 {
        let mut woken = 0;
        self.0.retain(|waiter| {
            let meant = waiter.address == address && waiter.bits & bits != 0;
            // SAFETY: a thread that waits here has not gone on, so it is alive.
            let wakes =
                meant && (woken as u64) < count && unsafe { baton::wake_up(&waiter.thread) };
            woken += i64::from(wakes);
            !wakes
        });
        woken
    }

    /// Lets at most `count` of those who wait here wait there; how many that were.
    fn requeue(&mut self, address: u64, count: u64, to: u64) -> i64 {
        let mut moved = VecDeque::new();
        let mut rest = VecDeque::new();
        for mut waiter in std::mem::take(&mut self.0) {
            if waiter.address == address && (moved.len() as u64) < count {
                waiter.address = to;
                moved.push_back(waiter);
            } else {
                rest.push_back(waiter);
            }
        }
        let count = moved.len() as i64;
        rest.extend(moved);
        self.0 = rest;
        count
    }

    fn forget(&mut self, thread: &Arc<SharedState>) {
        self.0.retain(|waiter| !Arc::ptr_eq(&waiter.thread, thread));
    }
}

/// Wakes whoever waits for a word of the guest's, as the kernel does when a thread ends.
pub fn wake_one(engine: &mut Engine, address: u64) {
    if is_private(engine, address) {
        engine.threads.futexes.wake(address, 1, ANY);
    } else {
        // SAFETY: a wake touches no memory.
        unsafe { crate::sys::syscall!(libc::SYS_futex, address, libc::FUTEX_WAKE, 1) };
    }
}

/// Whether nobody but the threads of this process can wait there.
fn is_private(engine: &Engine, address: u64) -> bool {
    engine.process.memory.find(address).is_some_and(|(_, mapping)| !mapping.shared)
}

/// The answer to a futex operation, or `None` if it is the kernel's to answer.
pub fn call(context: &mut Context, a: [u64; 6]) -> Option<Outcome> {
    const WAIT_BITSET: i32 = 9;
    const WAKE_BITSET: i32 = 10;
    let [address, operation, value, timeout, other, last] = a;
    let command = operation as i32 & COMMAND;
    let engine = context.engine();
    if !is_private(engine, address) || !address.is_multiple_of(4) {
        return None;
    }
    let is_other_private = is_private(engine, other);
    let futexes = &mut engine.threads.futexes;
    // A negative count is one, as the kernel counts before it compares.
    let count = |number: u64| (number as i32).max(1) as u64;
    let answer = match command {
        libc::FUTEX_WAIT => return Some(wait(context, a, ANY)),
        WAIT_BITSET => return Some(wait(context, a, last as u32)),
        libc::FUTEX_WAKE => futexes.wake(address, count(value), ANY),
        WAKE_BITSET if last as u32 == 0 => -i64::from(libc::EINVAL),
        WAKE_BITSET => futexes.wake(address, count(value), last as u32),
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE if is_other_private => {
            if (value as i32) < 0 || (timeout as i32) < 0 {
                return Some(Outcome::error(libc::EINVAL));
            }
            let compares = command == libc::FUTEX_CMP_REQUEUE;
            match read_u32(address) {
                None => return Some(Outcome::error(libc::EFAULT)),
                Some(word) if compares && word != last as u32 => -i64::from(libc::EAGAIN),
                Some(_) => {
                    let woken = futexes.wake(address, value as u32 as u64, ANY);
                    let moved = futexes.requeue(address, timeout as u32 as u64, other);
                    // Without a comparison only those who were woken are told of.
                    if compares { woken + moved } else { woken }
                }
            }
        }
        libc::FUTEX_WAKE_OP if is_other_private && other.is_multiple_of(4) => {
            let Some(holds) = operate(other, last as u32) else {
                return Some(Outcome::error(libc::EFAULT));
            };
            let woken = futexes.wake(address, count(value), ANY);
            woken + if holds { futexes.wake(other, count(timeout), ANY) } else { 0 }
        }
        _ => return None,
    };
    Some(Outcome::Answer(answer))
}

/// Waits while the word has its value.
fn wait(context: &mut Context, a: [u64; 6], bits: u32) -> Outcome {
    let [address, operation, value, timeout, ..] = a;
    if bits == 0 {
        return Outcome::error(libc::EINVAL);
    }
    match read_u32(address) {
        None => return Outcome::error(libc::EFAULT),
        Some(word) if word != value as u32 => return Outcome::error(libc::EAGAIN),
        Some(_) => {}
    }
    let absolute = operation as i32 & COMMAND != libc::FUTEX_WAIT;
    let realtime = operation as i32 & libc::FUTEX_CLOCK_REALTIME != 0;
    let clock = if realtime { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
    let (engine, thread) = context.parts();
    if waits::ends_early(engine, timeout, absolute.then_some(clock)) {
        return Outcome::error(libc::ETIMEDOUT);
    }
    let deadline = waits::kernel_deadline(engine, timeout, absolute);
    let timeout = deadline.as_ref().map_or(timeout, |deadline| deadline.as_ptr() as u64);
    let shared = Arc::clone(&thread.shared);
    engine.threads.futexes.0.push_back(Waiter { address, bits, thread: Arc::clone(&shared) });
    thread.kernel.in_call = Some((libc::SYS_futex as u64, a));
    baton::fall_asleep(&shared);
    drop_baton(context);
    // The word is the thread's own, everything else as the guest asked: times and signals then
    // end it as they would have ended the guest's.
    let word = shared.granted.as_ptr() as u64;
    let operation = operation | libc::FUTEX_PRIVATE_FLAG as u64;
    let arguments = [word, operation, 0, timeout, 0, u64::from(ANY)];
    let mut answer = 0;
    while shared.granted.load(Ordering::Acquire) == 0 && answer == 0 {
        let attention = shared.attention.as_ptr();
        // SAFETY: a word of our own; nothing of the engine is borrowed while others run.
        answer = unsafe { cpu::guest_syscall(libc::SYS_futex as u64, arguments, attention) };
    }
    // SAFETY: our own thread, put to sleep above.
    let woken = unsafe { baton::after_sleep(&shared) };
    resume(context);
    context.engine().threads.futexes.forget(&shared);
    Outcome::Answer(if woken || answer == -i64::from(libc::EAGAIN) { 0 } else { answer })
}

/// What FUTEX_WAKE_OP does to the second word; whether its comparison holds.
pub fn operate(address: u64, encoded: u32) -> Option<bool> {
    let signed = |shift: u32| ((encoded << (20 - shift)) as i32) >> 20;
    let (operand, compared) = (signed(12), signed(0));
    let operand = if encoded >> 31 != 0 { 1i32.wrapping_shl(operand as u32) } else { operand };
    let before = read_u32(address)? as i32;
    let after = match encoded >> 28 & 7 {
        0 => operand,
        1 => before.wrapping_add(operand),
        2 => before | operand,
        3 => before & !operand,
        4 => before ^ operand,
        _ => return None,
    };
    if !guest::Checked.write(address, &after.to_le_bytes()) {
        return None;
    }
    Some(match encoded >> 24 & 15 {
        0 => before == compared,
        1 => before != compared,
        2 => before < compared,
        3 => before <= compared,
        4 => before > compared,
        5 => before >= compared,
        _ => return None,
    })
}
