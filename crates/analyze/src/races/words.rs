//! A set of words by address, of which those of a piece of memory can be taken away at once.

use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// A set of addresses.
#[derive(Clone, Debug, Default)]
pub struct Words {
    quick: FxHashSet<u64>,
    sorted: BTreeSet<u64>,
}

impl Words {
    /// Whether an address is in it.
    #[inline]
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.quick.contains(&address)
    }

    /// Adds an address.
    pub fn insert(&mut self, address: u64) {
        if self.quick.insert(address) {
            self.sorted.insert(address);
        }
    }

    /// Takes away those of a piece of memory.
    pub fn forget(&mut self, address: u64, size: u64) {
        while let Some(gone) = self.sorted.range(address..address.saturating_add(size)).next() {
            let gone = *gone;
            self.sorted.remove(&gone);
            self.quick.remove(&gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_with_their_memory() {
        let mut words = Words::default();
        [8, 16, 24].into_iter().for_each(|address| words.insert(address));
        words.forget(9, 8);
        assert_eq!([8, 16, 24].map(|address| words.contains(address)), [true, false, true]);
    }
}
