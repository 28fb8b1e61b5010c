//! Sets of locks that a thread holds, each kept once under a number.

use rustc_hash::FxHashMap;

/// The number of a set; 0 is the empty one.
pub type LockSet = u32;

/// Sets of locks.
#[derive(Clone, Debug)]
pub struct LockSets {
    all: Vec<Vec<u64>>,
    numbers: FxHashMap<Vec<u64>, LockSet>,
    /// Sets with a lock more or less that were asked for before.
    changed: FxHashMap<(LockSet, u64, bool), LockSet>,
}

impl Default for LockSets {
    fn default() -> Self {
        Self { all: vec![Vec::new()], numbers: FxHashMap::default(), changed: FxHashMap::default() }
    }
}

impl LockSets {
    /// The locks of a set, by address.
    #[must_use]
    pub fn get(&self, set: LockSet) -> &[u64] {
        self.all.get(set as usize).map_or(&[], Vec::as_slice)
    }

    fn number(&mut self, locks: Vec<u64>) -> LockSet {
        if locks.is_empty() {
            return 0;
        }
        if let Some(known) = self.numbers.get(&locks) {
            return *known;
        }
        let number = self.all.len() as LockSet;
        self.all.push(locks.clone());
        self.numbers.insert(locks, number);
        number
    }

    /// The set with one lock more. One that is held twice is there twice.
    pub fn with(&mut self, set: LockSet, lock: u64) -> LockSet {
        self.change(set, lock, true)
    }

    /// The set with one lock less.
    pub fn without(&mut self, set: LockSet, lock: u64) -> LockSet {
        self.change(set, lock, false)
    }

    fn change(&mut self, set: LockSet, lock: u64, more: bool) -> LockSet {
        if let Some(known) = self.changed.get(&(set, lock, more)) {
            return *known;
        }
        let mut locks = self.get(set).to_vec();
        if more {
            locks.insert(locks.partition_point(|held| *held < lock), lock);
        } else if let Ok(index) = locks.binary_search(&lock) {
            locks.remove(index);
        }
        let number = self.number(locks);
        self.changed.insert((set, lock, more), number);
        number
    }

    /// A lock that is in both sets.
    #[must_use]
    pub fn common(&self, left: LockSet, right: LockSet) -> Option<u64> {
        let right = self.get(right);
        self.get(left).iter().copied().find(|lock| right.binary_search(lock).is_ok())
    }
}
