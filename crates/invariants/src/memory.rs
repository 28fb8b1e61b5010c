//! The memory that is watched, byte by byte: who wrote it last, which threads have read it since, whose block
//! it is, and what it holds as far as that was told.
//!
//! Four bytes share a cell as long as all is the same of them, which is nearly always.

use crate::model::SiteId;
use rustc_hash::FxHashMap;

/// Threads whose reads are told apart; further ones count as the last of them.
const MOST_THREADS: u32 = 64;
const GRANULE: u64 = 4;
const PAGE: u64 = 4096;
const CELLS: usize = (PAGE / GRANULE) as usize;

/// The number of a block of memory that is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockNumber(pub u32);

impl BlockNumber {
    /// Memory that is not watched.
    pub const NONE: Self = Self(0);
    /// Static data.
    pub const STATIC: Self = Self(1);
}

/// What is known of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Who wrote it last.
    pub writer: SiteId,
    /// In which thread.
    pub thread: u32,
    /// Whose it is.
    pub block: BlockNumber,
    /// Threads that have read it since, a bit each.
    pub readers: u64,
}

const UNWATCHED: Cell =
    Cell { writer: SiteId::EXTERNAL, thread: 0, block: BlockNumber::NONE, readers: 0 };

/// Stands in a cell whose bytes differ.
const SPLIT: BlockNumber = BlockNumber(u32::MAX);

struct Page {
    cells: Box<[Cell]>,
    bytes: Box<[u8]>,
    known: Box<[bool]>,
}

/// Pages that are remembered.
const LATELY: usize = 64;

/// The page of each number with the same low bits that was asked for last, and where it is; a page that is not
/// watched is nowhere.
struct Lately([(u64, Option<u32>); LATELY]);

impl Default for Lately {
    fn default() -> Self {
        Self([(u64::MAX, None); LATELY])
    }
}

/// All watched memory.
#[derive(Default)]
pub struct Memory {
    pages: Vec<Page>,
    numbers: FxHashMap<u64, u32>,
    /// Pages that were asked for lately, watched or not, by the low bits of their numbers.
    lately: Lately,
    split: FxHashMap<u64, [Cell; GRANULE as usize]>,
}

/// The bit of a thread.
#[must_use]
pub fn reader(thread: u32) -> u64 {
    1 << thread.min(MOST_THREADS - 1)
}

impl Memory {
    fn find(&mut self, page: u64) -> Option<usize> {
        let known = &mut self.lately.0[page as usize % LATELY];
        if known.0 != page {
            *known = (page, self.numbers.get(&page).copied());
        }
        known.1.map(|number| number as usize)
    }

    fn make(&mut self, page: u64) {
        if !self.numbers.contains_key(&page) {
            self.numbers.insert(page, self.pages.len() as u32);
            self.lately.0[page as usize % LATELY] = (u64::MAX, None);
            self.pages.push(Page {
                cells: vec![UNWATCHED; CELLS].into(),
                bytes: vec![0; PAGE as usize].into(),
                known: vec![false; PAGE as usize].into(),
            });
        }
    }

    /// Watches memory from here on.
    pub fn watch(&mut self, start: u64, size: u64, cell: Cell) {
        let end = start.saturating_add(size);
        (start / PAGE..end.div_ceil(PAGE)).for_each(|page| self.make(page));
        self.update(start, size, |_| cell);
        self.forget_contents(start, size);
    }

    /// Memory is gone, with all that was known of it.
    pub fn unwatch(&mut self, start: u64, size: u64) {
        self.update(start, size, |_| UNWATCHED);
        self.forget_contents(start, size);
    }

    /// What is known of the byte at an address.
    pub fn at(&mut self, address: u64) -> Cell {
        let Some(page) = self.find(address / PAGE) else { return UNWATCHED };
        let cell = self.pages[page].cells[(address % PAGE / GRANULE) as usize];
        if cell.block == SPLIT {
            self.split[&(address / GRANULE)][(address % GRANULE) as usize]
        } else {
            cell
        }
    }

    /// Whether any byte of these is watched.
    pub fn is_watched(&mut self, start: u64, size: u64) -> bool {
        let last = start.saturating_add(size.saturating_sub(1));
        let mut all = (start..last).step_by(GRANULE as usize).chain([last]);
        all.any(|at| self.at(at).block != BlockNumber::NONE)
    }

    /// Asks `each` what is known of the bytes from now on. It is asked once for several that are alike, and
    /// not of memory that was never watched.
    pub fn update(&mut self, start: u64, size: u64, mut each: impl FnMut(Cell) -> Cell) {
        let end = start.saturating_add(size);
        let mut at = start;
        while at < end {
            let granule = at / GRANULE;
            let next = ((granule + 1) * GRANULE).min(end);
            let Some(page) = self.find(at / PAGE) else {
                at = (at / PAGE + 1).saturating_mul(PAGE);
                continue;
            };
            let index = (at % PAGE / GRANULE) as usize;
            self.update_granule(page, index, granule, at..next, &mut each);
            at = next;
        }
    }

    fn update_granule(
        &mut self,
        page: usize,
        index: usize,
        granule: u64,
        bytes: std::ops::Range<u64>,
        each: &mut impl FnMut(Cell) -> Cell,
    ) {
        let cell = self.pages[page].cells[index];
        let whole = bytes.end - bytes.start == GRANULE;
        if cell.block != SPLIT {
            let fresh = each(cell);
            if whole || fresh == cell {
                self.pages[page].cells[index] = fresh;
                return;
            }
            let mut cells = [cell; GRANULE as usize];
            bytes.for_each(|byte| cells[(byte % GRANULE) as usize] = fresh);
            self.split.insert(granule, cells);
            self.pages[page].cells[index].block = SPLIT;
            return;
        }
        let Some(cells) = self.split.get_mut(&granule) else { return };
        for byte in bytes {
            let cell = &mut cells[(byte % GRANULE) as usize];
            *cell = each(*cell);
        }
        let first = cells[0];
        if cells.iter().all(|cell| *cell == first) {
            self.split.remove(&granule);
            self.pages[page].cells[index] = first;
        }
    }

    fn forget_contents(&mut self, start: u64, size: u64) {
        let end = start.saturating_add(size);
        let mut at = start;
        while at < end {
            let next = ((at / PAGE + 1) * PAGE).min(end);
            if let Some(page) = self.find(at / PAGE) {
                let (from, to) = ((at % PAGE) as usize, ((next - 1) % PAGE) as usize);
                self.pages[page].known[from..=to].fill(false);
            }
            at = next;
        }
    }

    /// Memory holds these bytes; of others it is not known any more what they hold.
    pub fn store(&mut self, start: u64, size: u64, value: Option<u64>) {
        let Some(value) = value.filter(|_| size <= 8) else {
            return self.forget_contents(start, size);
        };
        for (address, byte) in (start..).zip(value.to_le_bytes()).take(size as usize) {
            if let Some(page) = self.find(address / PAGE) {
                let (page, at) = (&mut self.pages[page], (address % PAGE) as usize);
                (page.bytes[at], page.known[at]) = (byte, true);
            }
        }
    }

    /// What memory holds, if that was told.
    pub fn contents(&mut self, start: u64, size: u64) -> Option<u64> {
        let mut value = 0;
        for address in (start..start.checked_add(size)?).rev() {
            let page = self.find(address / PAGE)?;
            let (page, at) = (&self.pages[page], (address % PAGE) as usize);
            page.known[at].then_some(())?;
            value = value << 8 | u64::from(page.bytes[at]);
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[derive(Clone, Debug)]
    enum Act {
        Watch(u64, u64),
        Unwatch(u64, u64),
        Write(u64, u64, u32),
        Read(u64, u64, u32),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let range = || (0x1ff0u64..0x2020, 1u64..20);
        vec(
            prop_oneof![
                range().prop_map(|(at, size)| Act::Watch(at, size)),
                range().prop_map(|(at, size)| Act::Unwatch(at, size)),
                (range(), 1u32..5).prop_map(|((at, size), by)| Act::Write(at, size, by)),
                (range(), 1u32..5).prop_map(|((at, size), by)| Act::Read(at, size, by)),
            ],
            1..80,
        )
    }

    proptest! {
        #[test]
        fn cells_are_a_map_of_bytes(acts in acts()) {
            let mut memory = Memory::default();
            let mut map: HashMap<u64, (Cell, Option<u8>)> = HashMap::new();
            let fresh = |writer| Cell { writer: SiteId(writer), block: BlockNumber(7), ..UNWATCHED };
            for act in acts {
                match act {
                    Act::Watch(at, size) => {
                        memory.watch(at, size, fresh(9));
                        map.extend((at..at + size).map(|byte| (byte, (fresh(9), None))));
                    }
                    Act::Unwatch(at, size) => {
                        memory.unwatch(at, size);
                        map.retain(|byte, _| !(at..at + size).contains(byte));
                    }
                    Act::Write(at, size, by) => {
                        let is_watched = |cell: Cell| cell.block != BlockNumber::NONE;
                        memory.update(at, size, |cell| if is_watched(cell) { fresh(by) } else { cell });
                        let value = u64::from(by) * 0x0101_0101_0101_0101;
                        memory.store(at, size, Some(value));
                        for byte in at..at + size {
                            let known = (size <= 8).then_some(by as u8);
                            map.entry(byte).and_modify(|one| *one = (fresh(by), known));
                        }
                    }
                    Act::Read(at, size, by) => {
                        memory.update(at, size, |cell| Cell { readers: cell.readers | reader(by), ..cell });
                        for byte in at..at + size {
                            map.entry(byte).and_modify(|one| one.0.readers |= reader(by));
                        }
                    }
                }
                for byte in 0x1fe0..0x2040 {
                    let cell = memory.at(byte);
                    match map.get(&byte) {
                        Some((expected, contents)) => {
                            prop_assert_eq!(cell, *expected);
                            prop_assert_eq!(memory.contents(byte, 1), contents.map(u64::from));
                        }
                        None => prop_assert_eq!(cell.block, BlockNumber::NONE),
                    }
                }
            }
        }
    }
}
