//! One execution of an instruction, as those who walk through a trace see it.

use crate::dependence::block::{Blocks, Exit, Static, Superblock};
use crate::dependence::trace::{When, address};
use crate::semantics::Meaning;
use base::StepCount;
use base::Tick;
use events::shape::Source;

/// The record being looked at.
pub struct Record<'w> {
    pub when: When,
    pub exit: &'w Exit,
    pub block: &'w Superblock,
    pub payload: &'w [u8],
    pub explicit: &'w [u8],
}

/// One instruction of it.
pub struct At<'r> {
    pub record: &'r Record<'r>,
    pub index: u16,
    pub id: u32,
    pub instruction: &'r Static,
}

impl<'r> At<'r> {
    pub fn meaning(&self) -> &'r Meaning {
        &self.instruction.meaning
    }

    pub fn moment(&self) -> StepCount {
        StepCount(self.record.when.moment.0 + u64::from(self.index))
    }

    /// Its position, in the blocks of the trace.
    pub fn tick(&self, blocks: &Blocks) -> Tick {
        let ticks = blocks.ticks_before(self.record.exit, self.index);
        Tick(self.record.when.tick.0 + u64::from(ticks))
    }

    /// The address of a memory operand.
    pub fn slot(&self, slot: u8) -> Option<u64> {
        let range = self.record.block.accesses_of(self.index);
        let access = self.record.block.accesses[range].get(usize::from(slot))?;
        address(access, self.record.payload, self.record.when.bases)
    }

    /// Whether its accesses stand in a record of their own.
    pub fn is_irregular(&self) -> bool {
        let range = self.record.block.accesses_of(self.index);
        let accesses = &self.record.block.accesses[range];
        accesses.first().is_some_and(|access| access.source == Source::Explicit)
    }

    /// The accesses of a record of their own: whether it writes, address, bytes.
    pub fn explicit(&self) -> impl Iterator<Item = (bool, u64, u64)> + Clone + use<'r> {
        self.record.explicit.chunks_exact(13).map(|access| {
            let address = u64::from_le_bytes(access[1..9].try_into().expect("eight bytes"));
            let bytes = u32::from_le_bytes(access[9..13].try_into().expect("four bytes"));
            (access[0] != 0, address, u64::from(bytes))
        })
    }
}
