//! Memory that was mapped and is so no more: who gives it to the kernel uses it too late. Of other memory that cannot be
//! accessed only what begins where something is counts: programs ask the kernel on purpose whether memory is there.

use super::chains::Node;
use super::{Freed, Machine};
use crate::model::blocks::{REGION_ABSENT, Release};
use crate::model::stacks::StackId;
use crate::rules::state::{BlockFacts, BlockId, Pointer};
use std::collections::BTreeMap;

/// Ranges that are kept; whoever unmaps more has the oldest addresses forgotten.
const MOST: usize = 1 << 12;

/// Ranges that are mapped no more: by where they begin, where they end and who unmapped them.
#[derive(Clone, Debug, Default)]
pub(super) struct Unmapped(BTreeMap<u64, (u64, StackId)>);

impl Unmapped {
    fn add(&mut self, begin: u64, length: u64, by: StackId) {
        self.cut(begin, length);
        if self.0.len() >= MOST {
            self.0.pop_first();
        }
        if length > 0 {
            self.0.insert(begin, (begin.saturating_add(length), by));
        }
    }

    /// A range is mapped.
    pub fn cut(&mut self, begin: u64, length: u64) {
        let end = begin.saturating_add(length);
        while let Some((&from, &(to, by))) = self.0.range(..end).next_back()
            && to > begin
        {
            self.0.remove(&from);
            if to > end {
                self.0.insert(end, (to, by));
            }
            if from < begin {
                self.0.insert(from, (begin, by));
            }
        }
    }

    fn find(&self, address: u64) -> Option<StackId> {
        let (_, (end, by)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some(*by)
    }
}

impl Machine {
    /// A range is mapped no more.
    pub(super) fn unmap(&mut self, begin: u64, length: u64, by: Vec<u64>) {
        let by = self.keep_stack(by);
        self.unmapped.add(begin, length, by);
    }

    /// A block for memory that a system call was given and of which the bytes from `from` on cannot be accessed;
    /// none if nothing was ever known to be there. Stacks grow when they are used, and not before.
    pub fn absent_block(&mut self, address: u64, length: u64, from: u64) -> Option<BlockId> {
        let by = self.unmapped.find(from);
        let whole = from == address;
        if whole && by.is_none() || self.running().area.contains(&from) {
            return None;
        }
        let size = address.saturating_add(length).saturating_sub(from);
        let facts =
            BlockFacts { begin: from, size, time: self.time, family: 0, region: REGION_ABSENT };
        let id = self.blocks.add(facts, 0, false);
        let how = Freed { pointer: Pointer::default(), chain: Node::default(), when: None };
        let time = self.time;
        if let Some(block) = self.blocks.get_mut(id) {
            block.release = by.map(|stack| Release { time, stack, how });
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_again_is_known_no_more() {
        let mut unmapped = Unmapped::default();
        unmapped.add(0x1000, 0x4000, 1);
        unmapped.add(0x4000, 0x2000, 2);
        unmapped.cut(0x2000, 0x1000);
        let rows = [
            (0xfff, None),
            (0x1000, Some(1)),
            (0x1fff, Some(1)),
            (0x2000, None),
            (0x3000, Some(1)),
            (0x4000, Some(2)),
            (0x5fff, Some(2)),
            (0x6000, None),
        ];
        for (address, expected) in rows {
            assert_eq!(unmapped.find(address), expected, "{address:#x}");
        }
    }
}
