//! What registers and memory carry besides their value: for each eight bytes the block that a
//! pointer in them was made from, and the value's chain.

use super::chains::Node;
use super::pages::Pages;
use crate::rules::state::BlockId;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What a pointer was made from.
///
/// The difference of two pointers is kept too: `p + (new - old)` moves a pointer from one block to
/// another, as compilers and programs that relocate do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag(u32);

const DIFFERENCE: u32 = 1 << 31;

impl Tag {
    /// A pointer into this block.
    #[must_use]
    pub fn of(block: BlockId) -> Self {
        Self(block.0)
    }

    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The block, if it is a pointer.
    #[must_use]
    pub fn block(self) -> Option<BlockId> {
        (self.0 != 0 && self.0 & DIFFERENCE == 0).then_some(BlockId(self.0))
    }
}

/// Differences that are remembered; later ones are not.
const MOST_DIFFERENCES: usize = 1 << 20;

/// How tags behave under arithmetic.
#[derive(Clone, Default)]
pub struct Arithmetic {
    differences: Vec<(Tag, Tag)>,
    numbers: FxHashMap<(Tag, Tag), u32>,
}

impl Arithmetic {
    /// The tag of a sum.
    #[must_use]
    pub fn sum(&self, left: Tag, right: Tag) -> Tag {
        if right.is_none() {
            return left;
        }
        if left.is_none() {
            return right;
        }
        self.moved(left, right).or_else(|| self.moved(right, left)).unwrap_or_default()
    }

    /// The tag of `left - right`.
    pub fn difference(&mut self, left: Tag, right: Tag) -> Tag {
        if right.is_none() {
            return left;
        }
        // p - (p - q) is q.
        if let Some((to, from)) = self.parts(right)
            && to == left
            && !to.is_none()
        {
            return from;
        }
        // A number minus a pointer is remembered too: `memcpy` adds the pointer again.
        let pointer = left.is_none() || left.block().is_some();
        if !pointer || right.block().is_none() || left == right {
            return Tag::default();
        }
        if let Some(known) = self.numbers.get(&(left, right)) {
            return Tag(*known);
        }
        if self.differences.len() >= MOST_DIFFERENCES {
            return Tag::default();
        }
        self.differences.push((left, right));
        let number = DIFFERENCE | self.differences.len() as u32;
        self.numbers.insert((left, right), number);
        Tag(number)
    }

    fn parts(&self, tag: Tag) -> Option<(Tag, Tag)> {
        let index = (tag.0 & DIFFERENCE != 0).then_some(tag.0 & !DIFFERENCE)?;
        self.differences.get(index as usize - 1).copied()
    }

    /// `from + (to - from)`
    fn moved(&self, pointer: Tag, difference: Tag) -> Option<Tag> {
        let (to, from) = self.parts(difference)?;
        (from == pointer).then_some(to)
    }
}

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
}

fn word_of(address: u64) -> usize {
    (address % PAGE / WORD) as usize
}

impl Memory {
    /// What the word at an address carries; nothing if it does not begin there.
    #[inline]
    #[must_use]
    pub fn load(&self, address: u64) -> Cell {
        if !address.is_multiple_of(WORD) {
            return Cell::default();
        }
        self.pages.get(address / PAGE).map(|page| page[word_of(address)]).unwrap_or_default()
    }

    /// A word is stored.
    #[inline]
    pub fn store(&mut self, address: u64, cell: Cell) {
        if !address.is_multiple_of(WORD) {
            self.clear(address, WORD);
        } else if let Some(page) = self.pages.get_mut(address / PAGE) {
            page[word_of(address)] = cell;
        } else if cell != Cell::default() {
            let empty = || Box::new([Cell::default(); WORDS]);
            self.pages.get_or(address / PAGE, empty)[word_of(address)] = cell;
        }
    }

    /// Something that is no pointer is stored.
    pub fn clear(&mut self, address: u64, size: u64) {
        for (page, words) in self.touched(address & !(WORD - 1), address.saturating_add(size)) {
            if let Some(page) = self.pages.get_mut(page) {
                page[words].fill(Cell::default());
            }
        }
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
            let Some(page) = self.pages.get(number) else { continue };
            for word in words.filter(|word| page[*word] != Cell::default()) {
                moved.push((number * PAGE + word as u64 * WORD - from, page[word]));
            }
        }
        self.clear(to, size);
        for (offset, cell) in moved {
            self.store(to.wrapping_add(offset), cell);
        }
    }

    /// Every pointer that memory holds: where, and its block.
    pub fn pointers(&self) -> impl Iterator<Item = (u64, BlockId)> + '_ {
        self.pages.numbers().into_iter().flat_map(move |number| {
            let cells = self.pages.get(number).into_iter().flat_map(|page| page.iter().enumerate());
            cells.filter_map(move |(word, cell)| {
                Some((number * PAGE + word as u64 * WORD, cell.tag.block()?))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell(number: u32) -> Cell {
        Cell { tag: Tag(number), node: Node::default() }
    }

    #[test]
    fn differences_move_pointers_between_blocks() {
        let mut arithmetic = Arithmetic::default();
        let (old, new, other) = (Tag(1), Tag(2), Tag(3));
        let shift = arithmetic.difference(new, old);
        assert_eq!(shift.block(), None);
        assert_eq!(arithmetic.sum(old, shift), new);
        assert_eq!(arithmetic.sum(shift, old), new);
        assert_eq!(arithmetic.difference(new, shift), old);
        assert_eq!(arithmetic.sum(other, shift), Tag::default());
        assert_eq!(arithmetic.difference(new, new), Tag::default());
        assert_eq!(arithmetic.sum(Tag::default(), new), new);
        // source - target + target, as memcpy computes it.
        let apart = arithmetic.difference(Tag::default(), new);
        assert_eq!(arithmetic.sum(apart, new), Tag::default());
        assert_eq!(arithmetic.difference(Tag::default(), apart).block(), None);
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
