//! Variables with static storage, as blocks: what symbol tables say of their bounds.
//!
//! Compilers fold constants into addresses, so the address of one variable is also that of another
//! less a few bytes. Only the very beginning of a variable of some size is taken to be its address.

use super::blocks::{BlockFacts, BlockId, Blocks, REGION_GLOBAL};
use rustc_hash::FxHashMap;

/// Smaller ones could be what a larger one less a constant is.
pub const SMALLEST: u64 = 16;

/// Variables by address.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    all: FxHashMap<u64, (u64, Option<BlockId>)>,
}

impl Variables {
    /// There is a variable of so many bytes at an address.
    pub fn add(&mut self, begin: u64, size: u64) {
        if size >= SMALLEST {
            self.all.entry(begin).or_insert((size, None));
        }
    }

    /// The block of the variable that begins at an address, which it gets when it is first asked for.
    pub fn block_at<W: Copy>(&mut self, address: u64, blocks: &mut Blocks<W>) -> Option<BlockId> {
        let (size, block) = self.all.get_mut(&address)?;
        let facts =
            BlockFacts { begin: address, size: *size, time: 0, family: 0, region: REGION_GLOBAL };
        Some(*block.get_or_insert_with(|| blocks.add(facts, 0, false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_large_variable_is_its_address() {
        let (mut variables, mut blocks) = (Variables::default(), Blocks::<()>::default());
        variables.add(0x5000, 64);
        variables.add(0x6000, SMALLEST - 1);
        let block = variables.block_at(0x5000, &mut blocks).expect("it is known");
        assert_eq!(variables.block_at(0x5000, &mut blocks), Some(block), "always the same");
        assert_eq!(blocks.get(block).map(|block| block.facts.size), Some(64));
        assert_eq!(variables.block_at(0x5008, &mut blocks), None);
        assert_eq!(variables.block_at(0x6000, &mut blocks), None);
    }
}
