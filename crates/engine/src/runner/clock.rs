//! The process's time: ticks of all its threads, counted down by translated code to the next
//! moment that the dispatcher wants to see.

use super::cpu::cpu;
use std::sync::atomic::{AtomicU64, Ordering};

/// The time at which the countdown will be zero.
static END: AtomicU64 = AtomicU64::new(0);

/// Ticks so far.
pub fn now() -> u64 {
    END.load(Ordering::Relaxed) - cpu().ticks
}

/// Makes translated code leave after so many ticks more, at least one.
pub fn arm(ticks: u64) {
    let ticks = ticks.max(1);
    END.store(now() + ticks, Ordering::Relaxed);
    cpu().ticks = ticks;
}

/// Sets the time, for a process that is taken up in the middle.
pub fn set(time: u64) {
    END.store(time + cpu().ticks, Ordering::Relaxed);
}

/// Whether the countdown has run out.
pub fn is_out() -> bool {
    cpu().ticks == 0
}
