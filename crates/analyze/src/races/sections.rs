//! **Lost updates** without a race: a value is read in one critical section, and what is made of it is
//! written in a later one of the same lock, without a second look, although another thread has written it
//! in between. Every access is protected; what should be one section is two.

use super::clock::Thread;
use super::locks::{LockSet, LockSets};
use std::collections::BTreeMap;

/// An access inside a critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// By whom.
    pub thread: Thread,
    /// Where.
    pub site: u32,
    /// When.
    pub time: u64,
    /// Its place in the order of all such accesses, which ticks are too coarse for.
    pub sequence: u64,
    /// Locks that were held.
    pub locks: LockSet,
    /// The number of the critical section, from when the thread took its first lock until it gave the last.
    pub section: u32,
}

/// A write of another thread that was overwritten unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostUpdate {
    /// What was read and written.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The read in the first section.
    pub read: Inside,
    /// The other thread's write.
    pub foreign: Inside,
    /// The write in the later section.
    pub write: Inside,
    /// The lock that all three were made under.
    pub lock: u64,
    /// How often it happened at these sites.
    pub count: u64,
}

/// Accesses of critical sections, by address and size: blocks that are allocated anew forget theirs.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    known: BTreeMap<(u64, u64), LastAccesses>,
    found: Vec<LostUpdate>,
}

/// What is known of a piece of memory.
#[derive(Clone, Debug, Default)]
struct LastAccesses {
    /// The last read of each thread that has not written since.
    reads: Vec<Inside>,
    /// The last write, and the last one of another thread than that.
    writes: [Option<Inside>; 2],
}

/// Most that are kept.
const MOST: usize = 256;

impl Sections {
    /// A thread has read memory under a lock.
    pub fn read(&mut self, address: u64, size: u64, inside: Inside) {
        let reads = &mut self.known.entry((address, size)).or_default().reads;
        reads.retain(|known| known.thread != inside.thread);
        reads.push(inside);
    }

    /// A thread has written memory under a lock.
    pub fn write(&mut self, address: u64, size: u64, inside: Inside, sets: &LockSets) {
        let LastAccesses { reads, writes } = self.known.entry((address, size)).or_default();
        let own = reads.iter().position(|known| known.thread == inside.thread);
        let read = own.map(|index| reads.swap_remove(index));
        let is_foreign = |known: &Inside| known.thread != inside.thread;
        let foreign = writes.iter().flatten().copied().find(is_foreign);
        if writes[0].as_ref().is_some_and(is_foreign) {
            writes[1] = writes[0];
        }
        writes[0] = Some(inside);
        if let (Some(read), Some(foreign)) = (read, foreign)
            && read.section != inside.section
            && foreign.sequence > read.sequence
            && let Some(lock) = common(sets, [read.locks, foreign.locks, inside.locks])
        {
            self.note(LostUpdate { address, size, read, foreign, write: inside, lock, count: 1 });
        }
    }

    fn note(&mut self, update: LostUpdate) {
        let sites = |it: &LostUpdate| (it.read.site, it.foreign.site, it.write.site);
        if let Some(known) = self.found.iter_mut().find(|known| sites(known) == sites(&update)) {
            known.count += 1;
        } else if self.found.len() < MOST {
            self.found.push(update);
        }
    }

    /// Memory has become another object.
    pub fn forget(&mut self, address: u64, size: u64) {
        let range = (address, 0)..(address.saturating_add(size), 0);
        let gone: Vec<(u64, u64)> = self.known.range(range).map(|(key, _)| *key).collect();
        for key in gone {
            self.known.remove(&key);
        }
    }

    /// What was found.
    #[must_use]
    pub fn lost_updates(&self) -> &[LostUpdate] {
        &self.found
    }
}

/// A lock that is in all three sets.
fn common(sets: &LockSets, [one, other, third]: [LockSet; 3]) -> Option<u64> {
    let has = |set: LockSet, lock: &u64| sets.get(set).binary_search(lock).is_ok();
    sets.get(one).iter().copied().find(|lock| has(other, lock) && has(third, lock))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of (thread, section, whether it writes) on one variable under one lock; how many updates
    /// were lost.
    fn lost(run: &[(Thread, u32, bool)]) -> usize {
        let (mut sets, mut sections) = (LockSets::default(), Sections::default());
        let locks = sets.with(0, 7);
        for (time, (thread, section, write)) in run.iter().enumerate() {
            let (thread, section) = (*thread, *section);
            let sequence = time as u64;
            let inside = Inside { thread, site: time as u32, time: 0, sequence, locks, section };
            if *write {
                sections.write(64, 4, inside, &sets);
            } else {
                sections.read(64, 4, inside);
            }
        }
        sections.lost_updates().len()
    }

    const READ: bool = false;
    const WRITE: bool = true;

    #[test]
    fn a_write_between_the_two_sections_is_lost() {
        assert_eq!(lost(&[(0, 1, READ), (1, 2, READ), (1, 2, WRITE), (0, 3, WRITE)]), 1);
        assert_eq!(
            lost(&[(0, 1, READ), (1, 2, WRITE), (0, 3, READ), (0, 3, WRITE)]),
            0,
            "looked again"
        );
        assert_eq!(lost(&[(0, 1, READ), (0, 1, WRITE), (1, 2, WRITE)]), 0);
        assert_eq!(lost(&[(1, 2, WRITE), (0, 1, READ), (0, 3, WRITE)]), 0, "nobody in between");
        assert_eq!(
            lost(&[(1, 2, WRITE), (0, 1, WRITE), (0, 3, READ), (0, 4, WRITE)]),
            0,
            "long before"
        );
    }
}
