//! Variables with static storage, as blocks: what symbol tables say of their bounds.
//!
//! Compilers fold constants into addresses, so the address of one variable is also that of another
//! less a few bytes. Only the very beginning of a variable of some size is taken to be its address.

use super::blocks::Blocks;
use super::tags::Tag;
use crate::rules::model::REGION_GLOBAL;
use crate::rules::state::{BlockFacts, BlockId, NULL_PAGE};
use rustc_hash::FxHashMap;

/// Smaller ones could be what a larger one less a constant is.
pub const SMALLEST: u64 = 16;

/// Variables by address.
#[derive(Clone, Default)]
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

    /// What a pointer carries that is made from a constant.
    pub fn tag(&mut self, address: u64, blocks: &mut Blocks) -> Tag {
        // Most constants are numbers.
        if address < NULL_PAGE {
            return Tag::default();
        }
        let Some((size, block)) = self.all.get_mut(&address) else { return Tag::default() };
        let facts =
            BlockFacts { begin: address, size: *size, time: 0, family: 0, region: REGION_GLOBAL };
        Tag::of(*block.get_or_insert_with(|| blocks.add(facts, 0, false)))
    }
}
