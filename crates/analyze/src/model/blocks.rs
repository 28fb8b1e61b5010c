//! Blocks of memory that are never the same twice: which are live, which one an address is in, and
//! what became of each.

use super::stacks::StackId;
use base::allocator::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A block's identity, never used twice. Zero is no block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// The region of a heap block.
pub const REGION_HEAP: i64 = 1;
/// The region of the frame of a function that has not returned, or of a variable in it.
pub const REGION_STACK: i64 = 2;
/// The region of a frame whose function has returned.
pub const REGION_LEFT: i64 = 4;
/// The region of a variable with static storage, or of a thread's own.
pub const REGION_GLOBAL: i64 = 8;
/// The region of a variable of a function that has not returned, whose block has been left.
pub const REGION_SCOPE: i64 = 16;
/// The region of memory that cannot be accessed, and was given to a system call.
pub const REGION_ABSENT: i64 = 32;

/// What is known of a block, live or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFacts {
    /// First address.
    pub begin: u64,
    /// Bytes.
    pub size: u64,
    /// When it was allocated.
    pub time: u64,
    /// Which functions it belongs to.
    pub family: Family,
    /// One of the `REGION_*` constants; 0 for what is none of these.
    pub region: i64,
}

/// How a block ended, and what an analysis keeps of that (`W`).
#[derive(Clone, Copy, Debug)]
pub struct Release<W> {
    /// When.
    pub time: u64,
    /// By which calls.
    pub stack: StackId,
    /// What its analysis keeps.
    pub how: W,
}

/// A block and its history.
#[derive(Clone, Copy, Debug)]
pub struct Block<W> {
    /// What it is.
    pub facts: BlockFacts,
    /// By which calls it was allocated.
    pub stack: StackId,
    /// How it ended, if it did.
    pub release: Option<Release<W>>,
    /// Whether its address is still unknown: `posix_memalign` stores it where we do not look.
    pub unplaced: bool,
    /// Which variable it is, as whoever made it numbers them; 0 if it is none.
    pub variable: u32,
}

impl<W> Block<W> {
    /// First address past the block.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.facts.begin.saturating_add(self.facts.size)
    }

    /// How far an address is from the block; 0 inside of it.
    #[must_use]
    pub fn distance(&self, address: u64) -> u64 {
        let behind = address.saturating_add(1).saturating_sub(self.end());
        if address < self.facts.begin { self.facts.begin - address } else { behind }
    }

    /// Whether it is neither freed nor left.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.release.is_none()
            && !matches!(self.facts.region, REGION_LEFT | REGION_SCOPE | REGION_ABSENT)
    }
}

/// All blocks of a process.
#[derive(Clone)]
pub struct Blocks<W> {
    /// By number; number 0 is no block.
    all: Vec<Block<W>>,
    /// Live heap blocks by first address.
    live: BTreeMap<u64, BlockId>,
    /// Freed heap blocks whose memory no later block has taken, by first address.
    freed: BTreeMap<u64, BlockId>,
    /// Live heap blocks whose address is not known.
    unplaced: BTreeSet<BlockId>,
    /// Between which addresses blocks were ever freed: what is far off needs no look at the map.
    freed_within: Range<u64>,
}

impl<W> Default for Blocks<W> {
    fn default() -> Self {
        let (live, freed, unplaced) = Default::default();
        Self { all: Vec::new(), live, freed, unplaced, freed_within: 0..0 }
    }
}

impl<W: Copy> Blocks<W> {
    /// The block of a number.
    #[must_use]
    pub fn get(&self, id: BlockId) -> Option<&Block<W>> {
        self.all.get(id.0.checked_sub(1)? as usize)
    }

    /// The block of a number, to change.
    pub fn get_mut(&mut self, id: BlockId) -> Option<&mut Block<W>> {
        self.all.get_mut(id.0.checked_sub(1)? as usize)
    }

    /// How many blocks there ever were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Adds a block that is not part of the heap's map: a frame, a variable, an unplaced one.
    pub fn add(&mut self, facts: BlockFacts, stack: StackId, unplaced: bool) -> BlockId {
        self.all.push(Block { facts, stack, release: None, unplaced, variable: 0 });
        let id = BlockId(self.all.len() as u32);
        if unplaced {
            self.unplaced.insert(id);
        }
        id
    }

    /// Adds a variable.
    pub fn add_variable(&mut self, facts: BlockFacts, stack: StackId, variable: u32) -> BlockId {
        let id = self.add(facts, stack, false);
        if let Some(block) = self.get_mut(id) {
            block.variable = variable;
        }
        id
    }

    /// The oldest live heap block whose address is not known.
    #[must_use]
    pub fn unplaced(&self) -> Option<BlockId> {
        self.unplaced.first().copied()
    }

    /// Adds a heap block. What the map still had there is gone: the allocator says so.
    pub fn allocate(&mut self, facts: BlockFacts, stack: StackId) -> BlockId {
        let id = self.add(facts, stack, false);
        // A block of no bytes still has an address of its own.
        self.forget(facts.begin, facts.size.max(1));
        self.live.insert(facts.begin, id);
        id
    }

    /// Gives an unplaced block its address.
    pub fn place(&mut self, id: BlockId, begin: u64) {
        if let Some(block) = self.get_mut(id) {
            block.facts.begin = begin;
            block.unplaced = false;
            self.live.insert(begin, id);
            self.unplaced.remove(&id);
        }
    }

    /// Drops freed blocks from the map where memory is used anew or unmapped.
    pub fn forget(&mut self, begin: u64, size: u64) {
        let end = begin.saturating_add(size);
        // From the last one backwards: those that begin inside, and one that reaches in.
        while let Some((&at, &id)) = self.freed.range(..end).next_back()
            && (at >= begin || self.get(id).is_some_and(|block| block.end() > begin))
        {
            self.freed.remove(&at);
        }
    }

    /// Drops all blocks of the heap from the maps.
    pub fn forget_all(&mut self) {
        self.live.clear();
        self.freed.clear();
    }

    /// How many heap blocks may still be met.
    #[must_use]
    pub fn current(&self) -> usize {
        self.live.len() + self.freed.len() + self.unplaced.len()
    }

    /// Keeps only those, under other numbers.
    pub fn condense(&mut self) {
        let old = std::mem::take(&mut self.all);
        let mut keep = |id: BlockId| {
            self.all.extend(old.get(id.0 as usize - 1));
            BlockId(self.all.len() as u32)
        };
        for id in self.live.values_mut().chain(self.freed.values_mut()) {
            *id = keep(*id);
        }
        self.unplaced = std::mem::take(&mut self.unplaced).into_iter().map(keep).collect();
    }

    /// Ends a heap block.
    pub fn release(&mut self, id: BlockId, release: Release<W>) {
        let Some(block) = self.get_mut(id) else { return };
        block.release = Some(release);
        let (begin, end) = (block.facts.begin, block.end());
        self.live.remove(&begin);
        self.freed.insert(begin, id);
        let within = &mut self.freed_within;
        *within = match within.is_empty() {
            true => begin..end,
            false => within.start.min(begin)..within.end.max(end),
        };
    }

    /// Whether an address can be in a freed block at all.
    #[must_use]
    pub fn may_be_freed(&self, address: u64) -> bool {
        self.freed_within.contains(&address)
    }

    /// The live or the last freed heap block that begins at an address.
    #[must_use]
    pub fn beginning_at(&self, address: u64) -> Option<BlockId> {
        self.live.get(&address).or_else(|| self.freed.get(&address)).copied()
    }

    /// The live or the last freed heap block that an address is in.
    #[must_use]
    pub fn containing(&self, address: u64) -> Option<BlockId> {
        let inside = |map: &BTreeMap<u64, BlockId>| {
            let (_, id) = map.range(..=address).next_back()?;
            (address < self.get(*id)?.end()).then_some(*id)
        };
        inside(&self.live).or_else(|| inside(&self.freed))
    }

    /// The heap block that a pointer to its beginning most likely stands for, if only its address is
    /// known: a live one, or one whose address nobody has told, or the last that was there.
    #[must_use]
    pub fn at_pointer(&self, address: u64) -> Option<BlockId> {
        let there = self.beginning_at(address);
        let live = there.filter(|id| self.get(*id).is_some_and(Block::is_live));
        // What is known of this memory may be older than a block whose address nobody has told.
        live.or_else(|| self.unplaced()).or(there).or_else(|| self.containing(address))
    }

    /// Live heap blocks by address.
    pub fn live(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.live.values().copied()
    }

    /// Heap blocks that were freed, oldest first.
    pub fn freed(&self) -> impl Iterator<Item = BlockId> + '_ {
        let freed = |block: &Block<W>| block.release.is_some() && block.facts.region == REGION_HEAP;
        let numbered = self.all.iter().enumerate();
        numbered.filter(move |(_, block)| freed(block)).map(|(at, _)| BlockId(at as u32 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn facts(begin: u64, size: u64) -> BlockFacts {
        BlockFacts { begin, size, time: 0, family: 0, region: REGION_HEAP }
    }

    const RELEASE: Release<()> = Release { time: 0, stack: 0, how: () };

    proptest! {
        /// The oracle keeps a block number for every address.
        #[test]
        fn addresses_lead_to_their_latest_block(
            steps in prop::collection::vec((0u64..16, 0u64..5, any::<bool>()), 1..60),
        ) {
            let mut blocks = Blocks::<()>::default();
            let mut owner: Vec<Option<BlockId>> = vec![None; 100];
            for (at, size, free) in steps {
                let begin = at * 6;
                let there = blocks.live.get(&begin).copied();
                match (there, free) {
                    (Some(id), true) => blocks.release(id, RELEASE),
                    (None, false) => {
                        let id = blocks.allocate(facts(begin, size), 0);
                        // Whatever a successor overlaps is forgotten whole.
                        let taken: Vec<BlockId> = (begin..begin + size.max(1))
                            .filter_map(|address| owner[address as usize])
                            .collect();
                        for slot in &mut owner {
                            if slot.is_some_and(|known| taken.contains(&known)) {
                                *slot = None;
                            }
                        }
                        (begin..begin + size).for_each(|address| owner[address as usize] = Some(id));
                    }
                    _ => {}
                }
                for (address, expected) in owner.iter().enumerate() {
                    let found = blocks.containing(address as u64);
                    prop_assert_eq!(found, *expected);
                    let freed = found.is_some_and(|id| !blocks.get(id).unwrap().is_live());
                    prop_assert!(!freed || blocks.may_be_freed(address as u64));
                }
            }
        }
    }
}
