//! In which order locks are taken, and who waits for whom.
//!
//! A thread that takes a lock while it holds another adds an edge between the two. Threads can come to
//! wait for each other in a ring if edges of different threads make one, unless a lock that all of them
//! hold besides (a **gate**) keeps them apart, or the one is over before the other begins.

use super::clock::{Epoch, Thread, VectorClock};
use super::locks::{LockSet, LockSets};
use rustc_hash::FxHashMap;

/// A lock was taken while another was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The lock that was held.
    pub held: u64,
    /// The one that was taken.
    pub taken: u64,
    /// By whom.
    pub thread: Thread,
    /// Where the one was taken that is held.
    pub held_site: u32,
    /// Where the other was taken.
    pub site: u32,
    /// All locks that were held.
    pub locks: LockSet,
    /// Which threads had been made and joined by then: a number of [`Lives`].
    pub life: u32,
}

/// Threads that wait for each other, or might.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// For each thread the lock it has and the one that it wants, which the next one has.
    pub ring: Vec<Edge>,
    /// Whether they did wait for each other when the run ended.
    pub real: bool,
}

/// Which threads come before which because the one made or joined the other: an order that every run has.
#[derive(Clone, Debug, Default)]
struct Lives {
    all: Vec<VectorClock>,
    /// The present one of each thread.
    now: Vec<u32>,
}

impl Lives {
    fn now(&mut self, thread: Thread) -> u32 {
        while self.now.len() <= usize::from(thread) {
            let mut clock = VectorClock::default();
            clock.set(self.now.len() as Thread, 1);
            self.now.push(self.all.len() as u32);
            self.all.push(clock);
        }
        self.now[usize::from(thread)]
    }

    fn clock(&mut self, thread: Thread) -> &VectorClock {
        let now = self.now(thread);
        &self.all[now as usize]
    }

    fn change(&mut self, thread: Thread, change: impl FnOnce(&mut VectorClock)) {
        let mut clock = self.clock(thread).clone();
        change(&mut clock);
        self.now[usize::from(thread)] = self.all.len() as u32;
        self.all.push(clock);
    }

    fn starts(&mut self, maker: Thread, child: Thread) {
        let known = self.clock(maker).clone();
        self.change(child, |clock| clock.join(&known));
        self.change(maker, |clock| clock.set(maker, known.of(maker) + 1));
    }

    fn joins(&mut self, thread: Thread, ended: Thread) {
        let known = self.clock(ended).clone();
        self.change(thread, |clock| clock.join(&known));
    }

    /// Whether what a thread did in the one life is over before the other begins, or the other way round.
    fn are_apart(&self, one: (Thread, u32), other: (Thread, u32)) -> bool {
        let before = |(thread, life): (Thread, u32), later: u32| {
            let time = self.all[life as usize].of(thread);
            self.all[later as usize].knows(Epoch { thread, time })
        };
        before(one, other.1) || before(other, one.1)
    }
}

/// Longest ring that is looked for.
const LONGEST: usize = 4;
/// Edges of different places between the same locks that are kept.
const MOST_EDGES: usize = 64;

/// What is known of the order of locks.
#[derive(Clone, Debug, Default)]
pub struct LockOrder {
    edges: FxHashMap<u64, Vec<Edge>>,
    /// Who holds each lock alone, and where it was taken.
    holders: FxHashMap<u64, (Thread, u32)>,
    waiting: FxHashMap<Thread, (u64, u32, LockSet)>,
    lives: Lives,
}

impl LockOrder {
    /// A thread makes another.
    pub fn starts(&mut self, maker: Thread, child: Thread) {
        self.lives.starts(maker, child);
    }

    /// A thread has waited for the end of another.
    pub fn joins(&mut self, thread: Thread, ended: Thread) {
        self.lives.joins(thread, ended);
    }

    /// A thread has a lock alone that it did not wait for: by that nobody comes to wait in a ring, but others
    /// may wait for this one.
    pub fn has(&mut self, thread: Thread, lock: u64, site: u32) {
        self.holders.insert(lock, (thread, site));
    }

    /// A thread is about to take a lock, holding these.
    pub fn wants(&mut self, thread: Thread, lock: u64, site: u32, held: LockSet) {
        self.waiting.insert(thread, (lock, site, held));
    }

    /// It does not wait any more, and has the lock if it has `taken` it, alone if `alone`.
    pub fn got(&mut self, thread: Thread, sets: &LockSets, taken: bool, alone: bool) {
        let Some((lock, site, locks)) = self.waiting.remove(&thread) else { return };
        if !taken {
            return;
        }
        let life = self.lives.now(thread);
        for held in sets.get(locks) {
            if *held == lock {
                continue;
            }
            let held_site = self.holders.get(held).map_or(site, |(_, site)| *site);
            let edge = Edge { held: *held, taken: lock, thread, held_site, site, locks, life };
            let known = self.edges.entry(*held).or_default();
            let same = |other: &&Edge| {
                (other.taken, other.thread, other.site, other.life) == (lock, thread, site, life)
                    && other.locks == locks
            };
            if known.len() < MOST_EDGES && !known.iter().any(|other| same(&other)) {
                known.push(edge);
            }
        }
        if alone {
            self.holders.insert(lock, (thread, site));
        }
    }

    /// Who has a lock alone.
    #[must_use]
    pub fn holder(&self, lock: u64) -> Option<Thread> {
        self.holders.get(&lock).map(|(thread, _)| *thread)
    }

    /// A lock is given back.
    pub fn gave(&mut self, lock: u64) {
        self.holders.remove(&lock);
    }

    /// Rings, each once: those that happened first.
    #[must_use]
    pub fn deadlocks(&self, sets: &LockSets) -> Vec<Deadlock> {
        let mut found = self.real();
        let mut starts: Vec<u64> = self.edges.keys().copied().collect();
        starts.sort_unstable();
        for start in starts {
            self.extend(&mut vec![], start, start, sets, &mut found);
        }
        found
    }

    /// Threads that wait for each other now.
    fn real(&self) -> Vec<Deadlock> {
        let mut found: Vec<Deadlock> = Vec::new();
        let mut threads: Vec<Thread> = self.waiting.keys().copied().collect();
        threads.sort_unstable();
        for first in threads {
            let (mut ring, mut thread) = (Vec::new(), first);
            while let Some((lock, site, locks)) = self.waiting.get(&thread)
                && let Some((holder, _)) = self.holders.get(lock)
            {
                // What this one has is what the one before it wants.
                ring.push(Edge {
                    held: 0,
                    taken: *lock,
                    thread,
                    held_site: 0,
                    site: *site,
                    locks: *locks,
                    life: 0,
                });
                thread = *holder;
                if thread == first || ring.len() > self.waiting.len() {
                    break;
                }
            }
            let closed = thread == first && !ring.is_empty();
            if closed && ring.iter().all(|edge| edge.thread >= first) {
                let count = ring.len();
                for index in 0..count {
                    let held = ring[(index + count - 1) % count].taken;
                    ring[index].held = held;
                    ring[index].held_site = self.holders.get(&held).map_or(0, |(_, site)| *site);
                }
                found.push(Deadlock { ring, real: true });
            }
        }
        found
    }

    fn extend(
        &self,
        path: &mut Vec<Edge>,
        start: u64,
        at: u64,
        sets: &LockSets,
        found: &mut Vec<Deadlock>,
    ) {
        for edge in self.edges.get(&at).into_iter().flatten() {
            let gate = |other: &Edge| {
                other.thread == edge.thread
                    || sets.common(other.locks, edge.locks).is_some()
                    || self.lives.are_apart((other.thread, other.life), (edge.thread, edge.life))
            };
            if edge.taken < start || path.iter().any(gate) {
                continue;
            }
            path.push(*edge);
            if edge.taken == start && path.len() > 1 {
                let locks = |ring: &[Edge]| ring.iter().map(|edge| edge.held).collect::<Vec<_>>();
                let mut sorted = locks(path);
                sorted.sort_unstable();
                let known = found.iter().any(|other| {
                    let mut known = locks(&other.ring);
                    known.sort_unstable();
                    known == sorted
                });
                if !known {
                    found.push(Deadlock { ring: path.clone(), real: false });
                }
            } else if edge.taken != start && path.len() < LONGEST {
                self.extend(path, start, edge.taken, sets, found);
            }
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What threads do: the thread, the lock, and whether it is taken.
    fn rings(run: &[(Thread, u64, bool)]) -> Vec<(usize, bool)> {
        let (mut sets, mut order) = (LockSets::default(), LockOrder::default());
        let mut held: FxHashMap<Thread, LockSet> = FxHashMap::default();
        for (site, (thread, lock, takes)) in run.iter().enumerate() {
            let own = held.entry(*thread).or_default();
            if *takes {
                order.wants(*thread, *lock, site as u32, *own);
                let free = !order.holders.contains_key(lock);
                if free {
                    order.got(*thread, &sets, true, true);
                    *own = sets.with(*own, *lock);
                }
            } else {
                order.gave(*lock);
                *own = sets.without(*own, *lock);
            }
        }
        order.deadlocks(&sets).iter().map(|ring| (ring.ring.len(), ring.real)).collect()
    }

    const TAKE: bool = true;
    const GIVE: bool = false;

    #[test]
    fn opposite_orders_may_deadlock_but_not_behind_a_gate_nor_in_one_thread() {
        let pair = |thread, one, other| {
            [(thread, one, TAKE), (thread, other, TAKE), (thread, other, GIVE), (thread, one, GIVE)]
        };
        assert_eq!(rings(&[pair(0, 1, 2), pair(1, 2, 1)].concat()), [(2, false)]);
        assert_eq!(rings(&[pair(0, 1, 2), pair(1, 1, 2)].concat()), []);
        assert_eq!(rings(&[pair(0, 1, 2), pair(0, 2, 1)].concat()), []);
        let gated = |thread, one, other| {
            [vec![(thread, 9, TAKE)], pair(thread, one, other).to_vec(), vec![(thread, 9, GIVE)]]
                .concat()
        };
        assert_eq!(rings(&[gated(0, 1, 2), gated(1, 2, 1)].concat()), []);
        assert_eq!(rings(&[pair(0, 1, 2), pair(1, 2, 3), pair(2, 3, 1)].concat()), [(3, false)]);
    }

    #[test]
    fn what_is_over_before_the_other_begins_makes_no_ring() {
        let both = |order: &mut LockOrder, sets: &mut LockSets, thread, [one, other]: [u64; 2]| {
            order.wants(thread, one, 0, 0);
            order.got(thread, sets, true, true);
            let held = sets.with(0, one);
            order.wants(thread, other, 1, held);
            order.got(thread, sets, true, true);
            order.gave(other);
            order.gave(one);
        };
        let rings = |is_joined: bool| {
            let (mut sets, mut order) = (LockSets::default(), LockOrder::default());
            order.starts(0, 1);
            both(&mut order, &mut sets, 1, [8, 16]);
            if is_joined {
                order.joins(0, 1);
            }
            order.starts(0, 2);
            both(&mut order, &mut sets, 2, [16, 8]);
            order.deadlocks(&sets).len()
        };
        assert_eq!(rings(true), 0);
        assert_eq!(rings(false), 1);
    }

    #[test]
    fn threads_that_wait_for_each_other_are_told_as_such() {
        let run = [(0, 1, TAKE), (1, 2, TAKE), (0, 2, TAKE), (1, 1, TAKE)];
        assert_eq!(rings(&run), [(2, true)]);
        let alone = [(0, 1, TAKE), (0, 1, TAKE)];
        assert_eq!(rings(&alone), [(1, true)], "a lock that its holder wants again");
    }
}
