//! The threads of a recorded process: small numbers that are the same in every replay, and the kernel's ids.

use base::{ThreadNumber, Tick};
use recording::Recording;
use recording::log::{Call, Entry, entries};
use std::collections::HashSet;

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    /// The kernel's id. Ids come again when their threads have ended.
    kernel: i32,
    /// When it was first heard of.
    since: Tick,
}

/// The threads of a process, in the order in which they were made: the first is number 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads(Vec<Thread>);

/// `clone` and `clone3`.
const CLONES: [u64; 2] = [56, 435];

impl Threads {
    /// Those of one process of a recording.
    pub fn of(recording: &Recording, process: u32) -> Self {
        let Ok(log) = recording.log(process) else { return Self::default() };
        let log: Vec<Entry> = entries(log).map(|(entry, _)| entry).collect();
        Self::in_log(&log)
    }

    fn in_log(log: &[Entry]) -> Self {
        // A clone can also make a process; only threads run in this log.
        let ran: HashSet<i32> = log
            .iter()
            .filter_map(|entry| match entry {
                Entry::Switch { thread, .. } => Some(*thread),
                _ => None,
            })
            .collect();
        let mut threads = Self::default();
        for entry in log {
            match entry {
                Entry::Image(image) => {
                    threads.note(image.running, Tick(image.time));
                    image.threads.iter().for_each(|one| threads.note(one.number, Tick(image.time)));
                }
                Entry::Forked { thread } => threads.note(*thread, Tick(0)),
                Entry::Switch { thread, time } => threads.note(*thread, Tick(*time)),
                Entry::Skip(skip) => threads.note(skip.thread.number, Tick(skip.time)),
                Entry::Call(Call { number, time, answer, .. }) if CLONES.contains(number) => {
                    let made = i32::try_from(*answer).ok().filter(|made| ran.contains(made));
                    // An id that is there already has come again.
                    threads.0.extend(made.map(|kernel| Thread { kernel, since: Tick(*time) }));
                }
                _ => {}
            }
        }
        threads
    }

    fn note(&mut self, kernel: i32, since: Tick) {
        if self.0.iter().all(|known| known.kernel != kernel) {
            self.0.push(Thread { kernel, since });
        }
    }

    /// The number of the thread that has an id at a tick; of one that nobody has heard of, the next that
    /// would be given.
    pub fn number(&self, kernel: i32, tick: Tick) -> ThreadNumber {
        let known = |thread: &Thread| thread.kernel == kernel;
        let then = self.0.iter().rposition(|thread| known(thread) && thread.since <= tick);
        let index = then.or_else(|| self.0.iter().position(known)).unwrap_or(self.0.len());
        ThreadNumber(index as u32 + 1)
    }

    /// The kernel's id of a thread.
    pub fn kernel(&self, number: ThreadNumber) -> Option<i32> {
        Some(self.0.get(number.0.checked_sub(1)? as usize)?.kernel)
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clone(time: u64, answer: i64) -> Entry {
        Entry::Call(Call { number: 56, time, answer, ..Call::default() })
    }

    #[test]
    fn threads_count_in_the_order_in_which_they_were_made() {
        let log = [
            Entry::Forked { thread: 100 },
            clone(5, 102),
            clone(6, 101),
            clone(7, 999),
            Entry::Switch { thread: 101, time: 8 },
            Entry::Switch { thread: 102, time: 9 },
            clone(20, 101),
            Entry::Switch { thread: 103, time: 30 },
        ];
        let threads = Threads::in_log(&log);
        let numbers = [(100, 0), (102, 9), (101, 8), (101, 25), (103, 31), (7, 0)];
        let numbers = numbers.map(|(kernel, tick)| threads.number(kernel, Tick(tick)).0);
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6], "999 is a process, 101 came again");
        assert_eq!(threads.kernel(ThreadNumber(2)), Some(102));
        assert_eq!(threads.kernel(ThreadNumber(6)), None);
        assert_eq!(threads.kernel(ThreadNumber(0)), None);
    }
}
