//! Takes what threads do, and gives the pairs of accesses that race.

use super::cells::{Cells, Seen};
use super::clock::{Epoch, Thread, VectorClock};
use rustc_hash::FxHashMap;

/// Something by which threads are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// A lock, as whoever takes it alone leaves it.
    Lock(u64),
    /// A lock that is shared, as its readers leave it.
    Readers(u64),
    /// A condition, semaphore, barrier or the like at an address, and how often it came round.
    Signal(u64, u32),
    /// A word that is accessed by locked instructions.
    Atomic(u64),
    /// What goes through a file descriptor.
    Channel(u64),
    /// The end of a thread.
    End(Thread),
}

impl Object {
    /// Whether it orders only by who happened to come first.
    fn is_lock(self) -> bool {
        matches!(self, Self::Lock(_) | Self::Readers(_))
    }
}

/// One side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Who, when and where.
    pub seen: Seen,
    /// Whether it wrote.
    pub write: bool,
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The first byte that both touched.
    pub address: u64,
    /// The one that came first in this run.
    pub first: Access,
    /// The other.
    pub second: Access,
    /// How often two accesses at these sites raced.
    pub count: u64,
}

/// Most races of different sites that are kept.
const MOST_RACES: usize = 4096;

/// A detector of one process.
#[derive(Clone, Default)]
pub struct Detector {
    /// Whether locks do not order: then only what no common lock protects is told, by `apart`.
    without_locks: bool,
    threads: Vec<VectorClock>,
    objects: FxHashMap<Object, VectorClock>,
    cells: Cells,
    races: Vec<Race>,
    known: FxHashMap<(u32, u32), usize>,
    /// Races beyond those that are kept.
    pub dropped: u64,
}

impl Detector {
    /// A detector for which everything orders that orders in this run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A detector for which locks order nothing: it takes accesses to race that another run may show in
    /// the other order.
    #[must_use]
    pub fn without_locks() -> Self {
        Self { without_locks: true, ..Self::default() }
    }

    #[inline]
    fn clock(&mut self, thread: Thread) -> &mut VectorClock {
        let index = usize::from(thread);
        while self.threads.len() <= index {
            let fresh = self.threads.len() as Thread;
            let mut clock = VectorClock::default();
            clock.set(fresh, 1);
            self.threads.push(clock);
        }
        &mut self.threads[index]
    }

    /// A thread learns what has been left at an object.
    pub fn acquire(&mut self, thread: Thread, object: Object) {
        if self.without_locks && object.is_lock() {
            return;
        }
        self.clock(thread);
        if let Some(left) = self.objects.get(&object) {
            self.threads[usize::from(thread)].join(left);
        }
    }

    /// A thread leaves what it knows at an object; what it does from now on is later.
    pub fn release(&mut self, thread: Thread, object: Object) {
        if self.without_locks && object.is_lock() {
            return;
        }
        self.clock(thread);
        let clock = &mut self.threads[usize::from(thread)];
        self.objects.entry(object).or_default().join(clock);
        clock.set(thread, clock.of(thread) + 1);
    }

    /// A thread learns what another knows at this moment.
    pub fn learns(&mut self, thread: Thread, other: Thread) {
        let known = self.clock(other).clone();
        self.clock(thread).join(&known);
    }

    /// A thread makes another.
    pub fn starts(&mut self, thread: Thread, child: Thread) {
        let clock = self.clock(thread).clone();
        self.clock(child).join(&clock);
        let time = clock.of(thread) + 1;
        self.clock(thread).set(thread, time);
    }

    /// Whether a moment comes before what a thread does now.
    #[must_use]
    pub fn is_ordered(&mut self, epoch: Epoch, thread: Thread) -> bool {
        self.clock(thread).knows(epoch)
    }

    /// A thread reads or writes memory at a site; `apart` says whether two sites have no lock in common.
    pub fn access(
        &mut self,
        thread: Thread,
        (address, size): (u64, u64),
        write: bool,
        (site, time): (u32, u64),
        apart: impl Fn(u32, u32) -> bool,
    ) {
        let own = self.clock(thread).of(thread);
        let seen = Seen { epoch: Epoch { thread, time: own }, site, time };
        let Self { cells, threads, races, known, dropped, without_locks, .. } = self;
        let clock = &threads[usize::from(thread)];
        cells.access((address, size), seen, write, clock, |byte, before, wrote| {
            if *without_locks && !apart(before.site, site) {
                return;
            }
            if let Some(index) = known.get(&(before.site, site)) {
                races[*index].count += 1;
                return;
            }
            if races.len() == MOST_RACES {
                *dropped += 1;
                return;
            }
            known.insert((before.site, site), races.len());
            let first = Access { seen: before, write: wrote };
            let second = Access { seen, write };
            races.push(Race { address: byte, first, second, count: 1 });
        });
    }

    /// Memory has become another object.
    pub fn forget(&mut self, address: u64, size: u64) {
        self.cells.forget(address, size);
    }

    /// Accesses of which nothing was kept, as too much memory is shared.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.cells.left_out
    }

    /// What was found, in the order of the run.
    #[must_use]
    pub fn races(&self) -> &[Race] {
        &self.races
    }
}

#[cfg(test)]
mod tests;
