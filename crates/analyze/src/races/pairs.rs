//! **Torn pairs**, without a race: two variables that belong together are changed in two critical sections of the
//! same lock, and another thread, which always uses both, comes in between and sees one changed and the other not.
//! Or the other way round: it changes both in one section between two in which they are read.
//!
//! That they belong together is taken from the run itself (after Lu et al., MUVI, SOSP 2007): sections of others
//! access both, and the two sections follow each other in one function, each time. Whether two accesses that others
//! come between could still be one step is [`is_serializable`].

use super::locks::{LockSet, LockSets};
use super::sections::Inside;
use rustc_hash::FxHashMap;

/// Which of two accesses of one thread, first to `x` and then to `y`, write; and the same of another thread's
/// accesses to `x` and `y`, both of which come in between. Whether some order of the two threads, one after the
/// other, would have given the same values to every read and the same values in the end.
#[must_use]
pub fn is_serializable(own: [bool; 2], between: [bool; 2]) -> bool {
    // On one variable the other is after this one, on the other before: unless the one or the other does not matter.
    let conflicts = |at: usize| own[at] || between[at];
    !(conflicts(0) && conflicts(1))
}

/// A pair that was seen half changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornPair {
    /// Both variables.
    pub variables: [u64; 2],
    /// The accesses in two sections.
    pub own: [Inside; 2],
    /// Whether those write.
    pub writes: bool,
    /// Those of the section in between, to the same variables.
    pub between: [Inside; 2],
    /// The lock of all three sections.
    pub lock: u64,
    /// How often it happened at these sites.
    pub count: u64,
}

/// What a section has done to one variable.
#[derive(Clone, Copy, Debug)]
struct Touched {
    address: u64,
    write: bool,
    inside: Inside,
    /// The function it was in, as well as can be told: the calls that led there, and the instruction.
    place: (u32, u64),
}

/// Variables of a section that are looked at.
const MOST: usize = 12;
/// Pairs that are remembered.
const MOST_PAIRS: usize = 1 << 16;
/// Instructions further apart than this are not one thing that a function does.
const NEAR: u64 = 512;
/// So often both must have happened.
const SUPPORT: u64 = 3;

/// A section that accessed both of a pair.
#[derive(Clone, Copy, Debug)]
struct Both {
    accesses: [Inside; 2],
    writes: [bool; 2],
}

#[derive(Clone, Debug, Default)]
struct Pair {
    /// How many sections accessed both.
    sections: u64,
    /// The last one, and the last one of another thread than that.
    last: [Option<Both>; 2],
}

/// Two sections in a row, by sites.
#[derive(Clone, Debug)]
struct Split {
    count: u64,
    variables: [u64; 2],
    torn: Option<TornPair>,
}

/// Sections of all threads.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// What each thread does in the section that it is in, and did in the one before.
    now: FxHashMap<u16, Vec<Touched>>,
    before: FxHashMap<u16, Vec<Touched>>,
    pairs: FxHashMap<(u64, u64), Pair>,
    /// How many sections have accessed a variable.
    sections: FxHashMap<u64, u64>,
    splits: FxHashMap<(u32, u32), Split>,
}

impl Pairs {
    /// A thread has accessed memory under a lock, at a place.
    pub fn access(&mut self, address: u64, write: bool, inside: Inside, place: (u32, u64)) {
        let touched = self.now.entry(inside.thread).or_default();
        let is_full = touched.len() >= MOST;
        match touched.iter_mut().find(|known| known.address == address) {
            // Of several accesses to one variable a write is what others may see.
            Some(known) if write && !known.write => (known.write, known.inside) = (true, inside),
            None if !is_full => touched.push(Touched { address, write, inside, place }),
            Some(_) | None => {}
        }
    }

    /// A thread has given its last lock back; or waits for a condition, which says that what it sees in between is
    /// meant to be seen.
    pub fn ends(&mut self, thread: u16, waits: bool, sets: &LockSets) {
        let Some(touched) = self.now.get_mut(&thread).map(std::mem::take) else { return };
        if waits || touched.is_empty() {
            self.before.remove(&thread);
            return;
        }
        for one in &touched {
            *self.sections.entry(one.address).or_default() += 1;
        }
        self.look_back(thread, &touched, sets);
        self.note_both(&touched);
        self.before.insert(thread, touched);
    }

    /// Whether another thread came between this section and the one before.
    fn look_back(&mut self, thread: u16, touched: &[Touched], sets: &LockSets) {
        let Some(before) = self.before.get(&thread) else { return };
        let lacks = |list: &[Touched], address| list.iter().all(|one| one.address != address);
        for first in before.iter().filter(|first| lacks(touched, first.address)) {
            for second in touched.iter().filter(|second| lacks(before, second.address)) {
                let is_near = first.place.0 == second.place.0
                    && first.place.1.abs_diff(second.place.1) <= NEAR;
                // One instruction that comes by again goes through objects of a kind: these are no pair.
                let is_again = first.place.1 == second.place.1;
                if !is_near || is_again || first.write != second.write {
                    continue;
                }
                let sites = (first.inside.site, second.inside.site);
                let variables = [first.address, second.address];
                if self.splits.len() >= MOST_PAIRS && !self.splits.contains_key(&sites) {
                    continue;
                }
                let torn = torn(self.pairs.get(&key(variables)), [first, second], sets);
                let known = self.splits.entry(sites);
                let split = known.or_insert(Split { count: 0, variables, torn: None });
                if split.variables != variables {
                    continue;
                }
                split.count += 1;
                match (&mut split.torn, torn) {
                    (Some(known), Some(_)) => known.count += 1,
                    (empty @ None, Some(fresh)) => *empty = Some(fresh),
                    (_, None) => {}
                }
            }
        }
    }

    fn note_both(&mut self, touched: &[Touched]) {
        for (index, one) in touched.iter().enumerate() {
            for other in &touched[index + 1..] {
                let key = key([one.address, other.address]);
                if self.pairs.len() >= MOST_PAIRS && !self.pairs.contains_key(&key) {
                    continue;
                }
                let (low, high) = if one.address == key.0 { (one, other) } else { (other, one) };
                let accesses = [low.inside, high.inside];
                let both = Both { accesses, writes: [low.write, high.write] };
                let pair = self.pairs.entry(key).or_default();
                pair.sections += 1;
                let last = pair.last[0].as_ref();
                if last.is_some_and(|last| last.accesses[0].thread != both.accesses[0].thread) {
                    pair.last[1] = pair.last[0];
                }
                pair.last[0] = Some(both);
            }
        }
    }

    /// Pairs that were seen half changed, and of which the run says that they belong together.
    #[must_use]
    pub fn torn(&self) -> Vec<TornPair> {
        let belongs = |split: &&Split| {
            let pair = self.pairs.get(&key(split.variables));
            let both = pair.map_or(0, |pair| pair.sections);
            split.count >= SUPPORT
                && both >= SUPPORT
                && split.variables.iter().all(|variable| {
                    let all = self.sections.get(variable).copied().unwrap_or(0);
                    // The last section of a run may lack its second half.
                    (split.count + both) * 10 >= all.saturating_sub(1) * 9
                })
        };
        let found = self.splits.values().filter(belongs).filter_map(|split| split.torn);
        let mut found: Vec<TornPair> = found.collect();
        found.sort_by_key(|torn| torn.own[1].sequence);
        found
    }

    /// Memory has become another object.
    pub fn forget(&mut self, address: u64, size: u64) {
        let range = address..address.saturating_add(size);
        for touched in self.now.values_mut().chain(self.before.values_mut()) {
            touched.retain(|one| !range.contains(&one.address));
        }
    }
}

fn key([one, other]: [u64; 2]) -> (u64, u64) {
    (one.min(other), one.max(other))
}

/// Whether another thread's section came in between that makes two accesses of a thread no one step.
fn torn(pair: Option<&Pair>, [first, second]: [&Touched; 2], sets: &LockSets) -> Option<TornPair> {
    let order = if first.address < second.address { [0, 1] } else { [1, 0] };
    let between = pair?.last.iter().flatten().find(|both| {
        let [one, other] = order.map(|at| both.accesses[at]);
        one.thread != first.inside.thread
            && one.sequence.min(other.sequence) > first.inside.sequence
            && one.sequence.max(other.sequence) < second.inside.sequence
            && !is_serializable([first.write, second.write], order.map(|at| both.writes[at]))
    })?;
    let accesses = order.map(|at| between.accesses[at]);
    let all = [first.inside.locks, second.inside.locks, accesses[0].locks, accesses[1].locks];
    let lock = common(sets, all)?;
    Some(TornPair {
        variables: [first.address, second.address],
        own: [first.inside, second.inside],
        writes: first.write,
        between: accesses,
        lock,
        count: 1,
    })
}

/// A lock that is in all sets.
fn common(sets: &LockSets, [first, rest @ ..]: [LockSet; 4]) -> Option<u64> {
    let is_in = |set: &LockSet, lock: u64| sets.get(*set).binary_search(&lock).is_ok();
    let mut locks = sets.get(first).iter().copied();
    locks.find(|lock| rest.iter().all(|set| is_in(set, *lock)))
}

#[cfg(test)]
mod tests;
