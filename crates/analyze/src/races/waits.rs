//! Waits for a condition **without a loop**: a thread that is woken goes on without another look at what it
//! had looked at before it waited. It may have been woken for no reason, or too late.
//!
//! What it looked at is what it read in the critical section before the wait, its own stack apart.

use super::clock::Thread;

/// A wait after which nobody looked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unchecked {
    /// Who waited.
    pub thread: Thread,
    /// Where.
    pub site: u32,
    /// The condition variable.
    pub condition: u64,
    /// The lock that goes with it.
    pub lock: u64,
    /// What had been looked at last before.
    pub looked_at: u64,
}

/// Most addresses that are remembered of a critical section.
const MOST: usize = 64;
/// What is closer to the stack pointer than this is a thread's own stack.
const STACK: u64 = 1 << 20;

/// What one thread does about the conditions that it waits for.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// What it has read in this critical section, or since it was woken.
    reads: Vec<u64>,
    /// What it had looked at before it began to wait.
    looked_at: Vec<u64>,
    /// It was woken, and has not looked again: where it waited, the condition and the lock.
    woken: Option<(u32, u64, u64)>,
}

impl Waits {
    /// It has taken its first lock.
    pub fn begins(&mut self) {
        self.reads.clear();
        self.woken = None;
    }

    /// It has read memory under a lock.
    pub fn reads(&mut self, address: u64) {
        if self.woken.is_some() && self.looked_at.contains(&address) {
            self.woken = None;
        }
        if self.reads.len() < MOST && self.reads.last() != Some(&address) {
            self.reads.push(address);
        }
    }

    /// It begins to wait, with this stack pointer. Whoever waits again has not gone on.
    pub fn waits(&mut self, stack: u64) {
        self.woken = None;
        self.looked_at = std::mem::take(&mut self.reads);
        self.looked_at.retain(|address| address.abs_diff(stack) > STACK);
    }

    /// It was woken, and holds the lock again; not `signalled` if only time has passed.
    pub fn woken(&mut self, site: u32, (condition, lock): (u64, u64), signalled: bool) {
        let looked = signalled && !self.looked_at.is_empty();
        self.woken = looked.then_some((site, condition, lock));
    }

    /// It gives a lock back: too late for another look.
    pub fn gives(&mut self, thread: Thread, given: u64) -> Option<Unchecked> {
        let (site, condition, lock) = self.woken.take_if(|(_, _, lock)| *lock == given)?;
        let looked_at = *self.looked_at.last()?;
        Some(Unchecked { thread, site, condition, lock, looked_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK_POINTER: u64 = 1 << 40;

    /// A critical section that reads, waits, is woken and reads again; whether that is told.
    fn told(before: &[u64], signalled: bool, after: &[u64]) -> bool {
        let mut waits = Waits::default();
        waits.begins();
        before.iter().for_each(|address| waits.reads(*address));
        waits.waits(STACK_POINTER);
        waits.woken(1, (64, 128), signalled);
        after.iter().for_each(|address| waits.reads(*address));
        waits.gives(0, 128).is_some()
    }

    #[test]
    fn whoever_does_not_look_again_is_told() {
        assert!(told(&[8], true, &[16]));
        assert!(!told(&[8], true, &[16, 8]), "it looked again");
        assert!(!told(&[8], false, &[16]), "only time has passed");
        assert!(!told(&[], true, &[16]), "nothing was looked at before");
        assert!(!told(&[STACK_POINTER + 8], true, &[]), "only its own stack");
    }

    #[test]
    fn whoever_waits_again_has_not_gone_on() {
        let mut waits = Waits::default();
        waits.begins();
        waits.reads(8);
        waits.waits(STACK_POINTER);
        waits.woken(1, (64, 128), true);
        waits.waits(STACK_POINTER);
        assert_eq!(waits.gives(0, 128), None);
    }
}
