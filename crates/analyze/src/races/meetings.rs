//! Atomic words that several threads access, and the instructions that do. They race with nobody, but which
//! of them comes first may matter.

use super::clock::Thread;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Most instructions that are remembered.
const MOST: usize = 4096;

/// Accesses to atomic words.
#[derive(Clone, Debug, Default)]
pub struct Meetings {
    /// For each word who accessed it first, and whether another thread has since.
    words: FxHashMap<u64, (Thread, bool)>,
    accesses: FxHashSet<(u64, u64)>,
}

impl Meetings {
    /// A thread accesses an atomic word.
    pub fn access(&mut self, thread: Thread, address: u64, pc: u64) {
        if self.accesses.len() < MOST {
            self.accesses.insert((address, pc));
            let (first, is_shared) = self.words.entry(address).or_insert((thread, false));
            *is_shared |= *first != thread;
        } else if let Some((first, is_shared)) = self.words.get_mut(&address) {
            *is_shared |= *first != thread;
        }
    }

    /// The instructions that access words that several threads access.
    #[must_use]
    pub fn instructions(&self) -> BTreeSet<u64> {
        let is_shared = |word: &u64| self.words.get(word).is_some_and(|(_, shared)| *shared);
        self.accesses.iter().filter(|(word, _)| is_shared(word)).map(|(_, pc)| *pc).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_several_threads_access_is_told() {
        let mut meetings = Meetings::default();
        for (thread, address, pc) in [(0, 8, 100), (0, 16, 200), (1, 8, 300), (0, 16, 400)] {
            meetings.access(thread, address, pc);
        }
        assert_eq!(meetings.instructions(), BTreeSet::from([100, 300]));
    }
}
