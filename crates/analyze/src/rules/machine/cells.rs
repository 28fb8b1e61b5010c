//! What registers and memory carry besides their value: for each eight bytes the block that a
//! pointer in them was made from, and the value's chain.

use super::chains::Node;
use super::pages::Pages;
use super::tags::{Arithmetic, Tag};
use std::ops::Range;

/// What eight bytes carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// What a pointer in them was made from.
    pub tag: Tag,
    /// The value's chain.
    pub node: Node,
}

const WORD: u64 = 8;
const PAGE: u64 = 4096;
const WORDS: usize = (PAGE / WORD) as usize;

/// What memory carries, a cell for every eight bytes.
#[derive(Clone, Default)]
pub struct Memory {
    pages: Pages<Box<[Cell; WORDS]>>,
    /// What every word carries of which nothing is known, and what it carries elsewhere.
    absent: Cell,
    moved: Cell,
}

fn word_of(address: u64) -> usize {
    (address % PAGE / WORD) as usize
}

impl Memory {
    /// Memory of which nothing is known: what every word carries, and what its copies do.
    #[must_use]
    pub fn unknown(absent: Cell, moved: Cell) -> Self {
        Self { absent, moved, ..Self::default() }
    }

    /// What eight bytes at an address carry.
    #[inline]
    #[must_use]
    pub fn read(&self, address: u64, arithmetic: &mut Arithmetic) -> Cell {
        let offset = address % WORD;
        if offset == 0 {
            return self.load(address);
        }
        let [upper, lower] = [0, WORD].map(|at| self.moved(self.load(address - offset + at)));
        let tag = arithmetic.split(offset, upper.tag, lower.tag);
        Cell { tag, node: Node::default() }
    }

    /// Eight bytes are stored. Of two words that get parts each, one carries afterwards what all of its
    /// bytes come from, if that is one.
    #[inline]
    pub fn write(&mut self, address: u64, cell: Cell, arithmetic: &mut Arithmetic) {
        let offset = address % WORD;
        if offset == 0 {
            return self.store(address, cell);
        }
        let (first, second) = (address - offset, address - offset + WORD);
        let Some(split) = arithmetic.parts_of_words(cell.tag).filter(|s| s.offset == offset) else {
            return self.clear(address, WORD);
        };
        let (before, after) = (self.load(first), self.load(second));
        let begun = arithmetic.split(offset, Tag::default(), split.upper);
        if before.tag != split.upper {
            let whole = !begun.is_none() && before.tag == begun;
            let tag = if whole { split.upper } else { Tag::default() };
            self.store(first, Cell { tag, node: before.node });
        }
        if after.tag != split.lower {
            let tag = arithmetic.split(offset, Tag::default(), split.lower);
            self.store(second, Cell { tag, node: after.node });
        }
    }

    /// What the word at an address carries; nothing if it does not begin there.
    #[inline]
    #[must_use]
    pub fn load(&self, address: u64) -> Cell {
        if !address.is_multiple_of(WORD) {
            return Cell::default();
        }
        self.pages.get(address / PAGE).map_or(self.absent, |page| page[word_of(address)])
    }

    /// A word is stored.
    #[inline]
    pub fn store(&mut self, address: u64, cell: Cell) {
        if !address.is_multiple_of(WORD) {
            self.clear(address, WORD);
        } else if let Some(page) = self.pages.get_mut(address / PAGE) {
            page[word_of(address)] = cell;
        } else if cell != self.absent {
            self.page(address / PAGE)[word_of(address)] = cell;
        }
    }

    /// Something that is no pointer is stored.
    pub fn clear(&mut self, address: u64, size: u64) {
        for (page, words) in self.touched(address & !(WORD - 1), address.saturating_add(size)) {
            if let Some(page) = self.pages.get_mut(page) {
                page[words].fill(Cell::default());
            } else if self.absent != Cell::default() {
                self.page(page)[words].fill(Cell::default());
            }
        }
    }

    /// What a cell is elsewhere.
    fn moved(&self, cell: Cell) -> Cell {
        if cell == self.absent { self.moved } else { cell }
    }

    fn page(&mut self, number: u64) -> &mut [Cell; WORDS] {
        let absent = self.absent;
        self.pages.get_or(number, || Box::new([absent; WORDS]))
    }

    /// The pages of a range, and which of their words are in it. Pages that are not there may be left
    /// out, which they are where the range is longer than what is known.
    fn touched(&self, begin: u64, end: u64) -> impl Iterator<Item = (u64, Range<usize>)> + use<> {
        let all = begin / PAGE..end.div_ceil(PAGE);
        let far = all.end.saturating_sub(all.start) > 64 + self.pages.len() as u64;
        let known = if far { self.pages.numbers() } else { Vec::new() };
        let near = if far { 0..0 } else { all.clone() };
        let known = known.into_iter().filter(move |page| all.contains(page));
        near.chain(known).filter(move |_| begin < end).map(move |page| {
            let start = page * PAGE;
            let last = (end - start).min(PAGE).div_ceil(WORD) as usize;
            (page, word_of(begin.max(start))..last)
        })
    }

    /// Words are copied, as `memmove` does.
    pub fn copy(&mut self, to: u64, from: u64, size: u64) {
        if to % WORD != from % WORD {
            self.clear(to, size);
            return;
        }
        let first = from.next_multiple_of(WORD);
        let end = from.saturating_add(size) & !(WORD - 1);
        let mut moved = Vec::new();
        for (number, words) in self.touched(first, end) {
            let page = self.pages.get(number);
            if page.is_none() && self.absent == Cell::default() {
                continue;
            }
            for word in words {
                let cell = self.moved(page.map_or(self.absent, |page| page[word]));
                if cell != Cell::default() {
                    moved.push((number * PAGE + word as u64 * WORD - from, cell));
                }
            }
        }
        self.clear(to, size);
        for (offset, cell) in moved {
            self.store(to.wrapping_add(offset), cell);
        }
    }

    /// Every pointer that memory holds: where, and its tag.
    pub fn pointers(&self) -> impl Iterator<Item = (u64, Tag)> + '_ {
        self.pages.numbers().into_iter().flat_map(move |number| {
            let cells = self.pages.get(number).into_iter().flat_map(|page| page.iter().enumerate());
            let tagged = cells.filter(|(_, cell)| !cell.tag.is_none());
            tagged.map(move |(word, cell)| (number * PAGE + word as u64 * WORD, cell.tag))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::state::BlockId;
    use proptest::prelude::*;

    fn cell(number: u32) -> Cell {
        Cell { tag: Tag::of(BlockId(number)), node: Node::default() }
    }

    #[test]
    fn words_survive_copies_in_pieces_that_overlap() {
        // 25 bytes with a pointer in the second word: 16, then the last 16 of them.
        let (mut memory, mut arithmetic) = (Memory::default(), Arithmetic::default());
        memory.store(0x1008, cell(7));
        let copy = |memory: &mut Memory, arithmetic: &mut Arithmetic, from: u64, to: u64| {
            let lanes = [0, 8].map(|lane| memory.read(from + lane, arithmetic));
            for (lane, cell) in (0..).zip(lanes) {
                memory.write(to + 8 * lane, cell, arithmetic);
            }
        };
        copy(&mut memory, &mut arithmetic, 0x1000, 0x2000);
        copy(&mut memory, &mut arithmetic, 0x1009, 0x2009);
        assert_eq!(memory.load(0x2008).tag, cell(7).tag);
        assert_eq!(memory.load(0x2010).tag.block(), None);
        // The last ones alone: the word is whole only where all its bytes have come.
        copy(&mut memory, &mut arithmetic, 0x1009, 0x3009);
        assert_eq!(memory.load(0x3008).tag, Tag::default());
        copy(&mut memory, &mut arithmetic, 0x1001, 0x4001);
        assert_eq!(memory.load(0x4008).tag, cell(7).tag);
        // Half of a pointer is none.
        copy(&mut memory, &mut arithmetic, 0x0ff9, 0x5ff9);
        assert_eq!(memory.load(0x6008).tag.block(), None);
        // Nor is one that lands elsewhere in a word.
        copy(&mut memory, &mut arithmetic, 0x1001, 0x7002);
        assert_eq!(memory.load(0x7008).tag, Tag::default());
    }

    proptest! {
        /// The oracle is a map from words to cells.
        #[test]
        fn memory_is_a_map_of_words(
            steps in prop::collection::vec((0u8..3, 4000u64..4200, 4000u64..4200, 0u64..40), 1..50),
        ) {
            let mut memory = Memory::default();
            let mut oracle: std::collections::BTreeMap<u64, Cell> = Default::default();
            for (step, (kind, to, from, size)) in steps.into_iter().enumerate() {
                let overlaps = |word: u64, at: u64, size: u64| word < at + size && at < word + 8;
                match kind {
                    0 => {
                        memory.store(to, cell(step as u32 + 1));
                        oracle.retain(|word, _| !overlaps(*word, to, 8));
                        if to % 8 == 0 {
                            oracle.insert(to, cell(step as u32 + 1));
                        }
                    }
                    1 => {
                        memory.clear(to, size);
                        oracle.retain(|word, _| !overlaps(*word, to, size));
                    }
                    _ => {
                        memory.copy(to, from, size);
                        let same = to % 8 == from % 8;
                        let whole = |word: &u64| same && *word >= from && word + 8 <= from + size;
                        let moved: Vec<(u64, Cell)> = oracle
                            .iter()
                            .filter(|(word, _)| whole(word))
                            .map(|(word, cell)| (word - from + to, *cell))
                            .collect();
                        oracle.retain(|word, _| !overlaps(*word, to, size));
                        oracle.extend(moved);
                    }
                }
                for word in (3990..4300).filter(|word| word % 8 == 0) {
                    let expected = oracle.get(&word).copied().unwrap_or_default();
                    prop_assert_eq!(memory.load(word), expected, "word {}", word);
                }
            }
        }
    }
}
