//! Which memory threads share: a first, quick pass over a run finds the **lines** of 64 bytes that several
//! threads access and at least one of them writes. A race, a lost update or an atomic variable that orders
//! anything is in one of those, so that the second pass looks at nothing else.
//!
//! What is said here is about lines, and on the safe side: neighbours in a line are shared together.

use super::clock::Thread;
use rustc_hash::{FxHashMap, FxHashSet};

const LINE_BITS: u32 = 6;
/// Bytes of a line.
pub const LINE: u64 = 1 << LINE_BITS;
const PAGE_BITS: u32 = 12;
const LINES: usize = 1 << (PAGE_BITS - LINE_BITS);

/// Set in the state of a line that has been written.
const WRITTEN: u16 = 1 << 15;
/// Stands for several threads.
const MANY: u16 = WRITTEN - 1;
/// Pages that are found without a look into the map.
const RECENT: usize = 1 << 10;

/// Who has accessed each line: a thread's number and one, or [`MANY`], and whether it was written.
pub struct Owners {
    pages: FxHashMap<u64, u32>,
    tables: Vec<[u16; LINES]>,
    /// Pages by the low bits of their numbers, each with its table.
    recent: Box<[(u64, u32)]>,
}

impl Default for Owners {
    fn default() -> Self {
        let (pages, tables) = (FxHashMap::default(), Vec::new());
        Self { pages, tables, recent: vec![(u64::MAX, 0); RECENT].into() }
    }
}

impl Owners {
    /// A thread reads or writes memory.
    #[inline]
    pub fn access(&mut self, thread: Thread, address: u64, size: u64, write: bool) {
        let (first, last) = lines(address, size);
        self.line(thread, first, write);
        for line in first + 1..=last {
            self.line(thread, line, write);
        }
    }

    #[inline]
    fn line(&mut self, thread: Thread, line: u64, write: bool) {
        let own = (thread + 1).min(MANY);
        let page = line >> (PAGE_BITS - LINE_BITS);
        let (known, table) = self.recent[page as usize % RECENT];
        let table = if known == page { table } else { self.table(page) };
        let state = &mut self.tables[table as usize][line as usize % LINES];
        let wrote = if write { WRITTEN } else { 0 };
        if *state & !WRITTEN != own || *state & wrote != wrote {
            let is_first = *state & !WRITTEN == 0 || *state & !WRITTEN == own;
            *state = if is_first { own } else { MANY } | *state & WRITTEN | wrote;
        }
    }

    #[cold]
    fn table(&mut self, page: u64) -> u32 {
        let Self { pages, tables, recent } = self;
        let table = *pages.entry(page).or_insert_with(|| {
            tables.push([0; LINES]);
            tables.len() as u32 - 1
        });
        recent[page as usize % RECENT] = (page, table);
        table
    }

    /// The lines that are shared.
    #[must_use]
    pub fn shared(&self) -> SharedLines {
        let mut lines = FxHashSet::default();
        for (page, table) in &self.pages {
            let states = self.tables[*table as usize].iter().enumerate();
            let shared = states.filter(|(_, state)| **state == MANY | WRITTEN);
            lines.extend(shared.map(|(line, _)| page * LINES as u64 + line as u64));
        }
        SharedLines::new(lines)
    }
}

/// First and last line of some memory.
#[inline]
fn lines(address: u64, size: u64) -> (u64, u64) {
    (address >> LINE_BITS, address.saturating_add(size.max(1) - 1) >> LINE_BITS)
}

/// The lines that several threads access. Most questions are answered by a filter that fits into the
/// processor's nearest cache.
#[derive(Clone, Debug, Default)]
pub struct SharedLines {
    filter: Vec<u64>,
    shift: u32,
    lines: FxHashSet<u64>,
}

/// Least and most bits of the filter, as powers of two.
const FILTER_BITS: std::ops::RangeInclusive<u32> = 12..=24;

impl SharedLines {
    fn new(lines: FxHashSet<u64>) -> Self {
        let wanted = (lines.len() * 16).next_power_of_two().trailing_zeros();
        let bits = wanted.clamp(*FILTER_BITS.start(), *FILTER_BITS.end());
        let mut shared = Self { filter: vec![0; 1 << (bits - 6)], shift: 64 - bits, lines };
        for line in &shared.lines {
            let bit = hash(*line) >> shared.shift;
            shared.filter[(bit >> 6) as usize] |= 1 << (bit & 63);
        }
        shared
    }

    /// Whether some byte of this memory is in a shared line.
    #[inline]
    #[must_use]
    pub fn touches(&self, address: u64, size: u64) -> bool {
        let (first, last) = lines(address, size);
        self.has(first) || first != last && (first + 1..=last).any(|line| self.has(line))
    }

    #[inline]
    fn has(&self, line: u64) -> bool {
        let bit = hash(line) >> self.shift;
        let word = self.filter.get((bit >> 6) as usize).copied().unwrap_or(0);
        word >> (bit & 63) & 1 != 0 && self.lines.contains(&line)
    }

    /// The parts of this memory that are in shared lines: address and size of each.
    pub fn parts(&self, address: u64, size: u64) -> impl Iterator<Item = (u64, u64)> {
        let (first, last) = lines(address, size);
        (first..=last).filter(move |line| self.has(*line)).map(move |line| {
            let start = address.max(line << LINE_BITS);
            let end = address.saturating_add(size).min((line + 1) << LINE_BITS);
            (start, end - start)
        })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[inline]
fn hash(line: u64) -> u64 {
    line.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        /// By the definition: two threads, and a write, on some byte of the same line.
        #[test]
        fn lines_are_shared_by_those_who_access_them(
            run in prop::collection::vec((0u16..4, 0u64..0x3000, 1u64..200, any::<bool>()), 0..60),
        ) {
            let mut owners = Owners::default();
            let mut by_line: BTreeMap<u64, (BTreeSet<Thread>, bool)> = BTreeMap::new();
            for (thread, address, size, write) in &run {
                owners.access(*thread, *address, *size, *write);
                for byte in *address..address + size {
                    let (threads, written) = by_line.entry(byte / 64).or_default();
                    threads.insert(*thread);
                    *written |= write;
                }
            }
            let shared = owners.shared();
            for line in 0..0x3100 / 64 {
                let expected = by_line.get(&line).is_some_and(|(who, wrote)| who.len() > 1 && *wrote);
                prop_assert_eq!(shared.touches(line * 64, 64), expected, "line {}", line);
                prop_assert_eq!(shared.touches(line * 64 + 63, 1), expected);
            }
            let parts: u64 = shared.parts(32, 0x3000).map(|(_, size)| size).sum();
            let bytes = (32..0x3020).filter(|byte| shared.touches(*byte, 1)).count();
            prop_assert_eq!(parts, bytes as u64);
        }
    }
}
