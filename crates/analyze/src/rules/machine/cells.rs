//! What registers and memory carry besides their value: for each eight bytes the block that a
//! pointer in them was made from, and the value's chain.

use super::chains::Node;
use crate::rules::state::BlockId;
use rustc_hash::FxHashMap;

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
#[derive(Default)]
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

/// The cells of memory. Words that nothing was remembered of take no room.
#[derive(Default)]
pub struct Memory {
    pages: FxHashMap<u64, u32>,
    cells: Vec<Box<[Cell; WORDS]>>,
    /// The page last used, and its number.
    last: (u64, u32),
}

impl Memory {
    fn find(&mut self, address: u64) -> Option<&mut Cell> {
        let page = address / PAGE;
        let number = if self.last.0 == page && !self.cells.is_empty() {
            self.last.1
        } else {
            let number = *self.pages.get(&page)?;
            self.last = (page, number);
            number
        };
        let cells = self.cells.get_mut(number as usize)?;
        Some(&mut cells[(address % PAGE / WORD) as usize])
    }

    fn make(&mut self, address: u64) -> &mut Cell {
        let page = address / PAGE;
        let number = *self.pages.entry(page).or_insert_with(|| {
            self.cells.push(Box::new([Cell::default(); WORDS]));
            self.cells.len() as u32 - 1
        });
        self.last = (page, number);
        &mut self.cells[number as usize][(address % PAGE / WORD) as usize]
    }

    /// What the eight bytes at an address carry; nothing unless the address is a multiple of eight.
    pub fn load(&mut self, address: u64) -> Cell {
        if !address.is_multiple_of(WORD) {
            return Cell::default();
        }
        self.find(address).copied().unwrap_or_default()
    }

    /// Eight bytes are stored. Split over two words they are forgotten.
    pub fn store(&mut self, address: u64, cell: Cell) {
        if !address.is_multiple_of(WORD) {
            self.clear(address, WORD);
        } else if let Some(known) = self.find(address) {
            *known = cell;
        } else if cell != Cell::default() {
            *self.make(address) = cell;
        }
    }

    /// Bytes are overwritten by something that carries nothing.
    pub fn clear(&mut self, address: u64, size: u64) {
        let mut at = address & !(WORD - 1);
        let end = address.saturating_add(size);
        while at < end {
            match self.find(at) {
                Some(cell) => {
                    *cell = Cell::default();
                    at += WORD;
                }
                // Nothing is known of the whole page.
                None => at = (at / PAGE + 1).saturating_mul(PAGE),
            }
        }
    }

    /// Bytes are copied from one place to another, as by `memmove`.
    pub fn copy(&mut self, to: u64, from: u64, size: u64) {
        if to % WORD != from % WORD {
            self.clear(to, size);
            return;
        }
        let first = from.next_multiple_of(WORD) - from;
        let words = size.saturating_sub(first) / WORD;
        let cells: Vec<Cell> =
            (0..words).map(|word| self.load(from + first + word * WORD)).collect();
        self.clear(to, size);
        for (word, cell) in cells.into_iter().enumerate() {
            self.store(to + first + word as u64 * WORD, cell);
        }
    }

    /// Every pointer that memory holds: where, and its block.
    pub fn pointers(&self) -> impl Iterator<Item = (u64, BlockId)> + '_ {
        let mut pages: Vec<(&u64, &u32)> = self.pages.iter().collect();
        pages.sort_unstable();
        pages.into_iter().flat_map(move |(page, number)| {
            let cells = self.cells[*number as usize].iter().enumerate();
            cells.filter_map(move |(word, cell)| {
                Some((page * PAGE + word as u64 * WORD, cell.tag.block()?))
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
