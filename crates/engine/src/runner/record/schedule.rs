//! Which thread runs next, and for how long, while recording.
//!
//! * **fair**: slices of equal length, first come first served;
//! * **random**: slices of any length, mostly short ones, and whoever comes out of a hat;
//! * **pct**: threads have random priorities and the highest that can run does; at a few random
//!   moments the running one falls below all others. Finds every bug that needs so many ordering
//!   constraints with a probability that can be stated (Burckhardt et al., ASPLOS 2010).

use crate::config::Schedule;

/// Ticks of a fair slice.
const FAIR: u64 = 1 << 18;
/// Longest random slice, as a power of two.
const RANDOM_BITS: u64 = 17;
/// How often priorities are looked at.
const PCT_SLICE: u64 = 1 << 12;
/// The moments at which priorities change lie within so many ticks.
const PCT_HORIZON: u64 = 1 << 22;

/// Slices after which a thread that all others wait for falls below them too: it may be waiting for
/// one of them.
const PCT_PATIENCE: u64 = 256;
/// Times that a thread is passed over before it rises above all others: where many sleep and wake, there
/// is always a higher one that can run, and what they wait for may be its to do.
const PCT_PASSES: u64 = 1024;

/// Decides by a schedule; the same decisions for the same seed.
pub struct Scheduler {
    schedule: Schedule,
    cut: bool,
    random: Random,
    /// Times at which the running thread's priority falls; the next one last.
    changes: Vec<u64>,
    priorities: Vec<Priority>,
    lowest: u64,
    highest: u64,
    /// Slices that the running thread has had though others waited.
    kept: u64,
}

/// What a schedule by priorities knows of a thread.
struct Priority {
    thread: i32,
    priority: u64,
    /// How often another one was chosen since it was.
    passed: u64,
}

/// A small generator (xorshift64*): seeds must mean the same in every version.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

impl Scheduler {
    /// Starts deciding.
    pub fn new(schedule: Schedule, cut: bool) -> Self {
        let seed = match schedule {
            Schedule::Fair => 1,
            Schedule::Random { seed } | Schedule::Pct { seed, .. } => seed,
        };
        let mut random = Random(seed.wrapping_mul(2).wrapping_add(1) ^ 0x5851_f42d_4c95_7f2d);
        let mut changes = Vec::new();
        if let Schedule::Pct { depth, .. } = schedule {
            changes = (1..depth.max(1)).map(|_| random.below(PCT_HORIZON)).collect();
            changes.sort_unstable_by(|left, right| right.cmp(left));
        }
        let (priorities, lowest, highest) = (Vec::new(), u64::MAX / 2, u64::MAX / 2 + (1 << 41));
        Self { schedule, cut, random, changes, priorities, lowest, highest, kept: 0 }
    }

    /// Ticks until the running thread is stopped next.
    pub fn slice(&mut self, now: u64) -> u64 {
        match self.schedule {
            Schedule::Fair => FAIR,
            Schedule::Random { .. } => {
                let bits = self.random.below(RANDOM_BITS + 1);
                1 + self.random.below(1 << bits)
            }
            Schedule::Pct { .. } => {
                let change = self.changes.last().map_or(u64::MAX, |at| at.saturating_sub(now));
                PCT_SLICE.min(change.max(1))
            }
        }
    }

    /// With preemption inside blocks: how many instructions to go on one by one after a slice.
    pub fn steps(&mut self) -> u64 {
        if self.cut { self.random.below(12) } else { 0 }
    }

    /// A slice of `running` has ended. Whether it must let go if others wait.
    pub fn slice_ended(&mut self, running: i32, now: u64) {
        if self.changes.last().is_some_and(|at| *at <= now) {
            self.changes.pop();
            self.falls(running);
        }
    }

    /// A thread's priority is below all others from now on.
    fn falls(&mut self, fallen: i32) {
        self.lowest -= 1;
        let lowest = self.lowest;
        self.known(fallen).priority = lowest;
    }

    fn priority(&mut self, thread: i32) -> u64 {
        self.known(thread).priority
    }

    fn known(&mut self, thread: i32) -> &mut Priority {
        let Self { priorities, random, .. } = self;
        let at = priorities.iter().position(|known| known.thread == thread).unwrap_or_else(|| {
            let priority = u64::MAX / 2 + 1 + random.below(1 << 40);
            priorities.push(Priority { thread, priority, passed: 0 });
            priorities.len() - 1
        });
        &mut priorities[at]
    }

    /// Which of those that wait is next: an index.
    pub fn choose(&mut self, waiting: &[i32]) -> usize {
        match self.schedule {
            Schedule::Fair => 0,
            Schedule::Random { .. } => self.random.below(waiting.len() as u64) as usize,
            Schedule::Pct { .. } => self.choose_highest(waiting),
        }
    }

    fn choose_highest(&mut self, waiting: &[i32]) -> usize {
        for thread in waiting {
            self.known(*thread).passed += 1;
            if self.known(*thread).passed > PCT_PASSES {
                self.highest += 1;
                let highest = self.highest;
                self.known(*thread).priority = highest;
            }
        }
        let ranks = waiting.iter().enumerate();
        let best = ranks.map(|(index, thread)| (self.priority(*thread), usize::MAX - index)).max();
        let chosen = best.map_or(0, |(_, index)| usize::MAX - index);
        if let Some(thread) = waiting.get(chosen) {
            self.known(*thread).passed = 0;
        }
        chosen
    }

    /// Whether the running thread keeps the baton though others want it.
    pub fn keeps(&mut self, running: i32, waiting: &[i32]) -> bool {
        match self.schedule {
            Schedule::Pct { .. } => {
                self.kept += 1;
                if self.kept > PCT_PATIENCE {
                    self.falls(running);
                }
                let own = self.priority(running);
                let keeps = waiting.iter().all(|thread| self.priority(*thread) < own);
                self.kept = if keeps { self.kept } else { 0 };
                keeps
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decisions(schedule: Schedule) -> Vec<(u64, usize)> {
        let mut scheduler = Scheduler::new(schedule, false);
        (0..100).map(|now| (scheduler.slice(now), scheduler.choose(&[7, 8, 9]))).collect()
    }

    #[test]
    fn a_seed_always_decides_alike() {
        for seed in [0, 1, u64::MAX] {
            let random = Schedule::Random { seed };
            assert_eq!(decisions(random), decisions(random));
        }
        let other = Schedule::Random { seed: 2 };
        assert_ne!(decisions(Schedule::Random { seed: 1 }), decisions(other));
    }

    #[test]
    fn nobody_waits_for_ever() {
        let mut scheduler = Scheduler::new(Schedule::Pct { depth: 1, seed: 5 }, false);
        let running = [7, 8, 9][scheduler.choose(&[7, 8, 9])];
        let others: Vec<i32> = [7, 8, 9].into_iter().filter(|it| *it != running).collect();
        let kept = (0..).take_while(|_| scheduler.keeps(running, &others)).count();
        assert_eq!(kept as u64, PCT_PATIENCE);
    }

    #[test]
    fn nobody_is_passed_over_for_ever() {
        let mut scheduler = Scheduler::new(Schedule::Pct { depth: 1, seed: 5 }, false);
        let mut chosen = std::collections::BTreeSet::new();
        for _ in 0..10 * PCT_PASSES {
            // All but one can always run: they sleep in turns.
            chosen.insert([7, 8, 9][scheduler.choose(&[7, 8, 9])]);
        }
        assert_eq!(chosen.len(), 3);
    }

    #[test]
    fn a_fallen_thread_is_chosen_last() {
        let mut scheduler = Scheduler::new(Schedule::Pct { depth: 2, seed: 5 }, false);
        let first = scheduler.choose(&[7, 8]);
        let running = [7, 8][first];
        scheduler.slice_ended(running, PCT_HORIZON);
        assert_eq!(scheduler.choose(&[7, 8]), 1 - first);
        assert!(!scheduler.keeps(running, &[7, 8]));
    }
}
