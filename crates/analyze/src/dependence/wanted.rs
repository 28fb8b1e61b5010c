//! A set of bytes of memory that is asked about for every store that goes by.
//!
//! Pages of 4 KiB with a bit for every byte, found through a small table of those used last. Most
//! stores go to few pages, so that a look costs a comparison and a load.

use rustc_hash::FxHashMap;

/// Bytes that one word of a page stands for.
const WORD: u64 = 64;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// Entries of the table of pages used last; a power of two.
const RECENT: usize = 256;
/// In that table: the set has nothing in this page.
const NO_PAGE: u32 = u32::MAX;

/// A set of bytes of memory.
pub struct Wanted {
    pages: Vec<[u64; (PAGE / WORD) as usize]>,
    index: FxHashMap<u64, u32>,
    recent: Box<[(u64, u32); RECENT]>,
    /// Bytes in the set.
    count: u64,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            index: FxHashMap::default(),
            recent: Box::new([(u64::MAX, NO_PAGE); RECENT]),
            count: 0,
        }
    }
}

/// The bits of a word for `bytes` bytes from `from` on.
fn mask(from: u64, bytes: u64) -> u64 {
    if bytes >= WORD { u64::MAX << from } else { ((1 << bytes) - 1) << from }
}

/// The pieces of a range by words: address of the word, first byte in it, bytes, offset in the
/// range.
fn pieces(address: u64, bytes: u64) -> impl Iterator<Item = (u64, u64, u64, u64)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < bytes).then(|| {
            let at = address.wrapping_add(done);
            let from = at % WORD;
            let count = (WORD - from).min(bytes - done);
            let piece = (at - from, from, count, done);
            done += count;
            piece
        })
    })
}

impl Wanted {
    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of the page that an address is in.
    #[inline]
    fn page(&mut self, address: u64) -> u32 {
        let page = address / PAGE;
        let recent = &mut self.recent[page as usize % RECENT];
        if recent.0 != page {
            *recent = (page, self.index.get(&page).copied().unwrap_or(NO_PAGE));
        }
        recent.1
    }

    /// The word at an address that is one's first.
    #[inline]
    fn word(&mut self, address: u64) -> u64 {
        match self.page(address) {
            NO_PAGE => 0,
            page => self.pages[page as usize][(address % PAGE / WORD) as usize],
        }
    }

    /// Whether any of these bytes is in the set.
    #[inline]
    pub fn has(&mut self, address: u64, bytes: u64) -> bool {
        if self.count == 0 {
            return false;
        }
        let from = address % WORD;
        if from + bytes <= WORD {
            return self.word(address - from) & mask(from, bytes) != 0;
        }
        pieces(address, bytes)
            .any(|(word, from, count, _)| self.word(word) & mask(from, count) != 0)
    }

    /// Whether any byte from one address up to another, of the same or of neighbouring pages, is in the set.
    #[inline]
    pub fn has_between(&mut self, from: u64, to: u64) -> bool {
        if self.count == 0 {
            return false;
        }
        let mut at = from;
        while at < to {
            let end = (at - at % PAGE + PAGE).min(to);
            let page = self.page(at);
            if page != NO_PAGE {
                let words = (at % PAGE / WORD) as usize..=((end - 1) % PAGE / WORD) as usize;
                let any = self.pages[page as usize][words].iter().any(|word| *word != 0);
                if any && self.has(at, end - at) {
                    return true;
                }
            }
            at = end;
        }
        false
    }

    /// Adds bytes.
    pub fn add(&mut self, address: u64, bytes: u64) {
        for (word, from, count, _) in pieces(address, bytes) {
            self.add_mask(word, mask(from, count));
        }
    }

    /// Adds those of up to 64 bytes whose bit is set.
    pub fn add_some(&mut self, address: u64, which: u64) {
        let from = address % WORD;
        self.add_mask(address - from, which << from);
        if from > 0 {
            self.add_mask((address - from).wrapping_add(WORD), which >> (WORD - from));
        }
    }

    fn add_mask(&mut self, word: u64, bits: u64) {
        if bits == 0 {
            return;
        }
        let mut page = self.page(word);
        if page == NO_PAGE {
            page = self.pages.len() as u32;
            self.pages.push([0; (PAGE / WORD) as usize]);
            self.index.insert(word / PAGE, page);
            self.recent[(word / PAGE) as usize % RECENT] = (word / PAGE, page);
        }
        let held = &mut self.pages[page as usize][(word % PAGE / WORD) as usize];
        self.count += u64::from((bits & !*held).count_ones());
        *held |= bits;
    }

    /// Which of up to 64 bytes are there; bit N of the answer is byte N of the range.
    pub fn some(&mut self, address: u64, bytes: u64) -> u64 {
        let mut found = 0;
        for (word, from, count, done) in pieces(address, bytes.min(64)) {
            found |= ((self.word(word) & mask(from, count)) >> from) << done;
        }
        found
    }

    /// Takes out what is there of up to 64 bytes; bit N of the answer is byte N of the range.
    pub fn take(&mut self, address: u64, bytes: u64) -> u64 {
        let mut taken = 0;
        for (word, from, count, done) in pieces(address, bytes.min(64)) {
            taken |= (self.take_mask(word, mask(from, count)) >> from) << done;
        }
        taken
    }

    fn take_mask(&mut self, word: u64, bits: u64) -> u64 {
        let page = self.page(word);
        if page == NO_PAGE {
            return 0;
        }
        let held = &mut self.pages[page as usize][(word % PAGE / WORD) as usize];
        let taken = *held & bits;
        *held &= !bits;
        self.count -= u64::from(taken.count_ones());
        taken
    }

    /// Takes out what is there of a range of any size, as ranges.
    pub fn take_range(&mut self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        let end = address.saturating_add(bytes);
        let mut pages: Vec<u64> = if bytes / PAGE > self.index.len() as u64 {
            let inside = |page: &u64| page * PAGE < end && page * PAGE + PAGE > address;
            self.index.keys().copied().filter(inside).collect()
        } else {
            (address / PAGE..end.div_ceil(PAGE)).collect()
        };
        pages.sort_unstable();
        if self.count == 0 {
            return found;
        }
        for page in pages {
            let (start, end) = ((page * PAGE).max(address), (page * PAGE + PAGE).min(end));
            for (word, from, count, _) in pieces(start, end - start) {
                let bits = self.take_mask(word, mask(from, count));
                for byte in (0..WORD).filter(|bit| bits >> bit & 1 == 1).map(|bit| word + bit) {
                    match found.last_mut() {
                        Some((from, count)) if *from + *count == byte => *count += 1,
                        _ => found.push((byte, 1)),
                    }
                }
            }
        }
        found
    }

    /// Takes out everything, as ranges by address.
    pub fn take_all(&mut self) -> Vec<(u64, u64)> {
        self.take_range(0, u64::MAX)
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
            steps in prop::collection::vec((0u8..4, 3900u64..4300, 1u64..70), 1..200)
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
                        prop_assert_eq!(any, wanted.has(address, bytes));
                        let some = wanted.some(address, bytes);
                        for byte in 0..bytes.min(64) {
                            let there = set.contains(&(address + byte));
                            prop_assert_eq!(some >> byte & 1 == 1, there);
                        }
                    }
                }
            }
            prop_assert_eq!(wanted.is_empty(), set.is_empty());
            let all = wanted.take_all();
            let all: BTreeSet<u64> = all.into_iter().flat_map(|(from, n)| from..from + n).collect();
            prop_assert_eq!(all, set);
        }
    }
}
