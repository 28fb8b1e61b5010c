//! What a process does that another guest traces, so that its tracer sees the guest and not the engine.
//!
//! The kernel stops a traced process wherever a signal finds it. Where that is translated code the tracer's
//! engine lets it go on without a word ([`super::syscall::tracee`]); the dispatcher, at the next boundary between two
//! of the guest's instructions, then sends the signal again, and the kernel stops the process there,
//! with the guest's registers in their places. Faults that the engine finds out by itself, as a jump to what is not
//! code, are sent for the first time.

use super::context::Context;
use super::signal::{self, SignalInfo};
use super::syscall::execute::is_traced_by_guest;
use super::{cache, record, replay};
use crate::sys::{self, syscall};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// What processes of the tool tell each other while one traces the other. The tool lies at the same place in
/// all of them.
pub struct Traced {
    /// Not zero if a guest traces this process, or has.
    pub perhaps: AtomicI32,
    /// A signal to stop by at the next boundary.
    pub stop_wanted: AtomicI32,
    /// Whether a signal is on its way that asks the dispatcher to look.
    pub asked: AtomicI32,
    /// A signal that this process sends itself to end by: the tracer has heard of it.
    pub ends: AtomicI32,
    /// The thread that sends itself a signal again, and which.
    reporting: AtomicU64,
    /// Signals whose stops in translated code nobody was told of.
    unreported: AtomicU64,
}

/// See [`Traced`].
pub static TRACED: Traced = Traced {
    perhaps: AtomicI32::new(0),
    stop_wanted: AtomicI32::new(0),
    asked: AtomicI32::new(0),
    ends: AtomicI32::new(0),
    reporting: AtomicU64::new(0),
    unreported: AtomicU64::new(0),
};

impl Traced {
    /// Where a process notes that it reports a signal.
    pub fn report_place(&self) -> u64 {
        (&raw const self.reporting) as u64
    }
}

fn under_way(signal: i32) -> u64 {
    (sys::gettid() as u64) << 8 | signal as u64
}

/// In the signal handler: whether the signal is one that the thread has sent itself again. The tracer lets it have
/// it.
pub fn is_report(signal: i32) -> bool {
    let reporting = &TRACED.reporting;
    reporting.load(Ordering::Relaxed) != 0
        && reporting
            .compare_exchange(under_way(signal), 0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
}

/// In the signal handler: a signal has come to this pc.
pub fn came(signal: i32, pc: u64) {
    if TRACED.perhaps.load(Ordering::Relaxed) != 0 && cache::contains(pc) {
        TRACED.unreported.fetch_or(1 << (signal - 1), Ordering::Relaxed);
    }
}

/// In the signal handler: whether it is the tracer that asks the dispatcher to look.
pub fn is_asked() -> bool {
    TRACED.asked.swap(0, Ordering::Relaxed) != 0
}

/// The guest is at a boundary: stops there if the tracer wants it.
pub fn stop_if_wanted() {
    if TRACED.perhaps.load(Ordering::Relaxed) == 0 {
        return;
    }
    let signal = TRACED.stop_wanted.swap(0, Ordering::Relaxed);
    if signal != 0 {
        // SAFETY: sends a signal to this thread.
        unsafe { syscall!(libc::SYS_tgkill, sys::getpid(), sys::gettid(), signal) };
    }
}

/// A signal that has come is about to be delivered: whether the tracer, if it has not heard of it, leaves it.
pub fn lets_pass(context: &mut Context, info: &SignalInfo) -> bool {
    let bit = 1 << (info.number() - 1);
    let unreported = TRACED.perhaps.load(Ordering::Relaxed) != 0
        && TRACED.unreported.fetch_and(!bit, Ordering::Relaxed) & bit != 0;
    if !unreported || !is_traced_by_guest() {
        return true;
    }
    let before = context.cpu().registers;
    let passes = report(info);
    let engine = context.engine();
    if engine.is_recorded() && engine.cpu.registers != before {
        record::refuse(engine, CHANGED);
    }
    signal::apply(context.thread().signals.mask);
    passes
}

/// The guest is about to get a signal that it has raised itself: whether a tracer leaves it.
pub fn lets_fault(context: &mut Context, info: &SignalInfo) -> bool {
    let engine = context.engine();
    if engine.log.replayer.is_some() {
        return !replay::was_taken_away(engine);
    }
    if TRACED.perhaps.load(Ordering::Relaxed) == 0 || !is_traced_by_guest() {
        return true;
    }
    let before = engine.cpu.registers;
    let passes = report(info);
    if !passes {
        record::taken_away(engine, &before);
    } else if engine.is_recorded() && engine.cpu.registers != before {
        record::refuse(engine, CHANGED);
    }
    passes
}

/// What a recording has no entry for.
pub const CHANGED: &str = "the registers of a process were changed by its tracer";

/// Sends a signal again, so that the tracer sees the guest stop by it; whether the guest is to have it.
fn report(info: &SignalInfo) -> bool {
    let signal = info.number();
    TRACED.reporting.store(under_way(signal), Ordering::Relaxed);
    let mask: u64 = 1 << (signal - 1);
    // SAFETY: the kernel reads a signal's information and a mask; its handler notes nothing but that it came. The
    // tracer may change the registers in the block, which nobody has a reference to.
    unsafe {
        let (process, thread) = (sys::getpid(), sys::gettid());
        syscall!(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info.raw.as_ptr());
        syscall!(libc::SYS_rt_sigprocmask, libc::SIG_UNBLOCK, &raw const mask, 0, 8);
    }
    TRACED.reporting.swap(0, Ordering::Relaxed) != under_way(signal)
}

/// The process is about to end itself by a signal that its tracer has heard of.
pub fn ends(signal: i32) {
    TRACED.ends.store(signal, Ordering::Relaxed);
}
