//! A set of bytes of memory that is asked about for every store that goes by.
//!
//! Bytes are kept by lines of 64 with a mask. In front stands a small table of bits that says for
//! most lines at once that nothing of them is in the set; it stays in the processor's first cache.

use rustc_hash::FxHashMap;

const LINE: u64 = 64;
const FILTER_WORDS: usize = 1024;

/// A set of bytes of memory.
pub struct Wanted {
    lines: FxHashMap<u64, u64>,
    filter: Box<[u64; FILTER_WORDS]>,
    /// Lines put into the filter since it was last made anew.
    noted: usize,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { lines: FxHashMap::default(), filter: Box::new([0; FILTER_WORDS]), noted: 0 }
    }
}

fn bit(line: u64) -> (usize, u64) {
    let hash = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// The bits of a line for `bytes` bytes from `from` on.
fn mask(from: u64, bytes: u64) -> u64 {
    if bytes >= 64 { u64::MAX << from } else { ((1 << bytes) - 1) << from }
}

/// The pieces of a range by lines: line, first byte in it, bytes, offset in the range.
fn pieces(address: u64, bytes: u64) -> impl Iterator<Item = (u64, u64, u64, u64)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < bytes).then(|| {
            let at = address.wrapping_add(done);
            let from = at % LINE;
            let count = (LINE - from).min(bytes - done);
            let piece = (at / LINE, from, count, done);
            done += count;
            piece
        })
    })
}

impl Wanted {
    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether any of these bytes may be in the set; `false` is certain.
    #[inline]
    #[must_use]
    pub fn may_have(&self, address: u64, bytes: u64) -> bool {
        let first = address / LINE;
        let last = address.wrapping_add(bytes.wrapping_sub(1)) / LINE;
        let (word, one) = bit(first);
        if self.filter[word] & one != 0 {
            return true;
        }
        if first == last {
            return false;
        }
        let (word, one) = bit(last);
        self.filter[word] & one != 0 || last > first + 1
    }

    /// Adds bytes.
    pub fn add(&mut self, address: u64, bytes: u64) {
        for (line, from, count, _) in pieces(address, bytes) {
            self.add_mask(line, mask(from, count));
        }
    }

    /// Adds those of up to 64 bytes whose bit is set.
    pub fn add_some(&mut self, address: u64, which: u64) {
        let from = address % LINE;
        self.add_mask(address / LINE, which << from);
        if from > 0 {
            self.add_mask((address / LINE).wrapping_add(1), which >> (LINE - from));
        }
    }

    fn add_mask(&mut self, line: u64, bits: u64) {
        if bits == 0 {
            return;
        }
        let entry = self.lines.entry(line).or_insert(0);
        if *entry == 0 {
            let (word, one) = bit(line);
            self.filter[word] |= one;
            self.noted += 1;
        }
        *entry |= bits;
        if self.noted > 4096 && self.noted > 4 * self.lines.len() {
            self.renew();
        }
    }

    fn renew(&mut self) {
        self.filter.fill(0);
        for line in self.lines.keys() {
            let (word, one) = bit(*line);
            self.filter[word] |= one;
        }
        self.noted = self.lines.len();
    }

    /// Takes out what is there of up to 64 bytes; bit N of the answer is byte N of the range.
    pub fn take(&mut self, address: u64, bytes: u64) -> u64 {
        let mut taken = 0;
        for (line, from, count, done) in pieces(address, bytes.min(64)) {
            taken |= (self.take_mask(line, mask(from, count)) >> from) << done;
        }
        taken
    }

    fn take_mask(&mut self, line: u64, bits: u64) -> u64 {
        let Some(entry) = self.lines.get_mut(&line) else { return 0 };
        let taken = *entry & bits;
        *entry &= !bits;
        if *entry == 0 {
            self.lines.remove(&line);
        }
        taken
    }

    /// What is there of up to 64 bytes, without taking it out.
    #[must_use]
    pub fn look(&self, address: u64, bytes: u64) -> u64 {
        let mut found = 0;
        for (line, from, count, done) in pieces(address, bytes.min(64)) {
            let bits = self.lines.get(&line).copied().unwrap_or(0) & mask(from, count);
            found |= (bits >> from) << done;
        }
        found
    }

    /// Takes out what is there of a range of any size, as ranges.
    pub fn take_range(&mut self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        let lines: Vec<u64> = if bytes / LINE > self.lines.len() as u64 {
            let last = address.saturating_add(bytes.saturating_sub(1)) / LINE;
            let inside = |line: &u64| (address / LINE..=last).contains(line);
            let mut lines: Vec<u64> = self.lines.keys().copied().filter(inside).collect();
            lines.sort_unstable();
            lines
        } else {
            pieces(address, bytes).map(|(line, ..)| line).collect()
        };
        for line in lines {
            let start = (line * LINE).max(address);
            let end = (line * LINE + LINE).min(address.saturating_add(bytes));
            let bits = self.take_mask(line, mask(start % LINE, end - start));
            for at in (0..64).filter(|bit| bits >> bit & 1 == 1) {
                let byte = line * LINE + at;
                match found.last_mut() {
                    Some((from, count)) if *from + *count == byte => *count += 1,
                    _ => found.push((byte, 1)),
                }
            }
        }
        found
    }

    /// All of it, as ranges by address.
    #[must_use]
    pub fn ranges(&self) -> Vec<(u64, u64)> {
        let mut copy = Self { lines: self.lines.clone(), ..Self::default() };
        let mut lines: Vec<u64> = copy.lines.keys().copied().collect();
        lines.sort_unstable();
        let mut all: Vec<(u64, u64)> = Vec::new();
        for (from, count) in lines.into_iter().flat_map(|line| copy.take_range(line * LINE, LINE)) {
            match all.last_mut() {
                Some((last, length)) if *last + *length == from => *length += count,
                _ => all.push((from, count)),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_of_bytes(
            steps in prop::collection::vec((0u8..4, 0u64..400, 1u64..70), 1..200)
        ) {
            let (mut wanted, mut set) = (Wanted::default(), BTreeSet::new());
            for (kind, address, bytes) in steps {
                let range = address..address + bytes;
                match kind {
                    0 => {
                        wanted.add(address, bytes);
                        set.extend(range);
                    }
                    1 => {
                        let bytes = bytes.min(64);
                        let taken = wanted.take(address, bytes);
                        for byte in 0..bytes {
                            prop_assert_eq!(taken >> byte & 1 == 1, set.remove(&(address + byte)));
                        }
                    }
                    2 => {
                        let taken = wanted.take_range(address, bytes);
                        let taken: BTreeSet<u64> =
                            taken.into_iter().flat_map(|(from, count)| from..from + count).collect();
                        let expected: BTreeSet<u64> = range.filter(|b| set.remove(b)).collect();
                        prop_assert_eq!(taken, expected);
                    }
                    _ => {
                        let any = range.clone().any(|byte| set.contains(&byte));
                        prop_assert!(!any || wanted.may_have(address, bytes));
                        let seen = wanted.look(address, bytes.min(64)) != 0;
                        prop_assert_eq!(seen, (address..address + bytes.min(64)).any(|b| set.contains(&b)));
                    }
                }
            }
            prop_assert_eq!(wanted.is_empty(), set.is_empty());
        }
    }
}
