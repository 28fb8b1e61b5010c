//! A set of bytes of memory: those that hold nothing anyone wrote.

use rustc_hash::FxHashMap;

const PAGE: u64 = 4096;
const WORDS: usize = (PAGE / 64) as usize;

/// A set of addresses, kept by pages.
#[derive(Default)]
pub struct Bytes {
    pages: FxHashMap<u64, Box<[u64; WORDS]>>,
}

/// The part of `[begin, end)` in the 64 addresses of one word, as a mask.
fn mask(word: u64, begin: u64, end: u64) -> u64 {
    let (first, last) = (begin.max(word) - word, end.min(word + 64) - word);
    let below = |bits: u64| if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    below(last) & !below(first)
}

/// Goes through a range word by word: address of the word's first bit, and the bits of the range.
fn words(begin: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let first = begin & !63;
    (first..end).step_by(64).map(move |word| (word, mask(word, begin, end)))
}

impl Bytes {
    /// Adds a range.
    pub fn insert(&mut self, begin: u64, size: u64) {
        for (word, bits) in words(begin, begin.saturating_add(size)) {
            let page = self.pages.entry(word / PAGE).or_insert_with(|| Box::new([0; WORDS]));
            page[(word % PAGE / 64) as usize] |= bits;
        }
    }

    /// Removes a range.
    pub fn remove(&mut self, begin: u64, size: u64) {
        for (word, bits) in words(begin, begin.saturating_add(size)) {
            if let Some(page) = self.pages.get_mut(&(word / PAGE)) {
                page[(word % PAGE / 64) as usize] &= !bits;
            }
        }
    }

    /// Which of the bytes from `begin` on are in the set, bit 0 the first; at most 64.
    #[must_use]
    pub fn bits(&self, begin: u64, size: u64) -> u64 {
        let mut found = 0;
        for (word, bits) in words(begin, begin.saturating_add(size.min(64))) {
            let Some(page) = self.pages.get(&(word / PAGE)) else { continue };
            let bits = page[(word % PAGE / 64) as usize] & bits;
            found |= if word >= begin { bits << (word - begin) } else { bits >> (begin - word) };
        }
        found
    }

    /// The first byte of a range that is in the set.
    #[must_use]
    pub fn first(&self, begin: u64, size: u64) -> Option<u64> {
        words(begin, begin.saturating_add(size)).find_map(|(word, bits)| {
            let page = self.pages.get(&(word / PAGE))?;
            let bits = page[(word % PAGE / 64) as usize] & bits;
            (bits != 0).then(|| word + u64::from(bits.trailing_zeros()))
        })
    }

    /// The bytes from `from` on decide about those from `to` on, as `memmove` copies.
    pub fn copy(&mut self, to: u64, from: u64, size: u64) {
        let chunks: Vec<u64> =
            (0..size).step_by(64).map(|at| self.bits(from + at, (size - at).min(64))).collect();
        for (index, bits) in chunks.into_iter().enumerate() {
            let at = to + index as u64 * 64;
            self.assign(at, (size - index as u64 * 64).min(64), bits);
        }
    }

    /// Sets each byte of a range as its bit says.
    pub fn assign(&mut self, begin: u64, size: u64, bits: u64) {
        if bits == 0 {
            self.remove(begin, size);
            return;
        }
        for offset in 0..size {
            if bits & 1 << offset != 0 {
                self.insert(begin + offset, 1);
            } else {
                self.remove(begin + offset, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_of_addresses(
            steps in prop::collection::vec((0u8..3, 4000u64..4200, 0u64..150, 4000u64..4200), 1..40),
        ) {
            let (mut bytes, mut oracle) = (Bytes::default(), BTreeSet::new());
            for (kind, at, size, from) in steps {
                match kind {
                    0 => {
                        bytes.insert(at, size);
                        oracle.extend(at..at + size);
                    }
                    1 => {
                        bytes.remove(at, size);
                        oracle.retain(|byte| !(at..at + size).contains(byte));
                    }
                    _ => {
                        bytes.copy(at, from, size);
                        let there: Vec<bool> =
                            (from..from + size).map(|byte| oracle.contains(&byte)).collect();
                        for (byte, there) in (at..).zip(there) {
                            if there { oracle.insert(byte); } else { oracle.remove(&byte); }
                        }
                    }
                }
                for byte in 3900..4500 {
                    prop_assert_eq!(bytes.bits(byte, 1) == 1, oracle.contains(&byte));
                }
                let first = oracle.range(at..at + 64).next().copied();
                prop_assert_eq!(bytes.first(at, 64), first);
                let bits = (0..64).filter(|bit| oracle.contains(&(at + bit)));
                prop_assert_eq!(bytes.bits(at, 64), bits.fold(0, |all, bit| all | 1 << bit));
            }
        }
    }
}
