//! Variables with static storage, as blocks: what symbol tables say of their bounds.
//!
//! Compilers fold constants into addresses, so the address of one variable is also that of another
//! less a few bytes. Where code is optimised, only the very beginning of a variable is taken to be its
//! address, and if it is small, an access to an array right above it may be meant as well.

use super::blocks::{BlockFacts, BlockId, Blocks, REGION_GLOBAL};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Smaller ones could be what a larger one less a constant is.
pub const SMALLEST: u64 = 16;
/// How far before an array compilers count from.
const FOLDED: u64 = 64;

/// Marks the block of a variable that an address was taken of in optimised code.
pub const DOUBTFUL: u32 = 1 << 31;

/// Variables by address.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    all: FxHashMap<u64, VariableBlocks>,
    sizes: BTreeMap<u64, u64>,
}

#[derive(Clone, Debug, Default)]
struct VariableBlocks {
    size: u64,
    /// Its block, and the one for pointers that may be to another one.
    blocks: [Option<BlockId>; 2],
}

impl Variables {
    /// There is a variable of so many bytes at an address.
    pub fn add(&mut self, begin: u64, size: u64) {
        self.all.entry(begin).or_insert(VariableBlocks { size, ..VariableBlocks::default() });
        self.sizes.entry(begin).or_insert(size);
    }

    /// Whether an address may be in one.
    #[must_use]
    pub fn may_have(&self, address: u64) -> bool {
        self.before(address).is_some_and(|(begin, size)| address - begin < size)
    }

    fn before(&self, address: u64) -> Option<(u64, u64)> {
        self.sizes.range(..=address).next_back().map(|(begin, size)| (*begin, *size))
    }

    /// The block of the variable that an address is of, which it gets when it is first asked for. `plain`:
    /// the code that makes the address is not optimised.
    pub fn block_at<W: Copy>(
        &mut self,
        address: u64,
        plain: bool,
        blocks: &mut Blocks<W>,
    ) -> Option<BlockId> {
        let begin = match self.all.contains_key(&address) {
            true => address,
            // A member, or an element by a constant.
            false if plain => self.before(address).filter(|(at, size)| address - at < *size)?.0,
            false => return None,
        };
        let known = self.all.get_mut(&begin)?;
        // Even plain code has addresses before an array as constants.
        let doubtful = begin != address || !plain && known.size < SMALLEST;
        let facts =
            BlockFacts { begin, size: known.size, time: 0, family: 0, region: REGION_GLOBAL };
        let variable = if doubtful { DOUBTFUL } else { 0 };
        let block = &mut known.blocks[usize::from(doubtful)];
        Some(*block.get_or_insert_with(|| blocks.add_variable(facts, 0, variable)))
    }

    /// Whether an access that leaves the variable which begins at an address may be to an array right above
    /// it that is meant.
    #[must_use]
    pub fn is_doubtful(&self, begin: u64, access: u64, size: u64) -> bool {
        let Some((other, bytes)) = self.before(access) else { return false };
        let inside = access.saturating_add(size) <= other.saturating_add(bytes);
        other > begin && bytes >= SMALLEST && other - begin <= FOLDED.max(bytes) && inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_variable_is_its_address_and_where_nothing_is_folded_all_of_it() {
        let (mut variables, mut blocks) = (Variables::default(), Blocks::<()>::default());
        variables.add(0x5000, 64);
        variables.add(0x6000, SMALLEST - 1);
        let block = variables.block_at(0x5000, false, &mut blocks).expect("it is known");
        assert_eq!(variables.block_at(0x5000, true, &mut blocks), Some(block), "always the same");
        assert_eq!(blocks.get(block).map(|block| block.facts.size), Some(64));
        assert_eq!(variables.block_at(0x5008, false, &mut blocks), None);
        let inside = variables.block_at(0x5008, true, &mut blocks).expect("it is in there");
        assert_eq!(blocks.get(inside).map(|block| block.facts.begin), Some(0x5000));
        assert_eq!(variables.block_at(0x5040, true, &mut blocks), None);
        let small = variables.block_at(0x6000, false, &mut blocks).expect("it is known");
        assert_eq!(blocks.get(small).map(|block| block.variable), Some(DOUBTFUL));
        let sure = variables.block_at(0x6000, true, &mut blocks).expect("it is known");
        assert_eq!(blocks.get(sure).map(|block| block.variable), Some(0));
    }

    #[test]
    fn an_array_above_a_small_variable_may_be_meant() {
        let mut variables = Variables::default();
        variables.add(0x5000, 8);
        variables.add(0x5008, 32);
        variables.add(0x5028, 4);
        assert!(
            variables.is_doubtful(0x5000, 0x5008, 4) && variables.is_doubtful(0x5000, 0x5024, 4)
        );
        assert!(!variables.is_doubtful(0x5000, 0x5026, 4), "it leaves that too");
        assert!(!variables.is_doubtful(0x5000, 0x5028, 4), "that is no array");
        assert!(variables.may_have(0x5007) && !variables.may_have(0x502c));
    }
}
