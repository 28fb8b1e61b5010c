//! The close look at accesses near blocks: which bytes are whose.

use super::{BESIDE, FREED, Heap};
use crate::layout::BLANK_BASE;
use crate::runner::engine::Engine;
use crate::runner::screens::allocators::HeapBlock;
use crate::runner::screens::shadow::Table;
use events::plan::{GRANULE, Paint};
use events::suspicion::{Access, Memory, Suspicion};
use std::ops::Range;

/// Looks at the last granule of a block that found nothing, until it is no longer tested.
const MOST_LOOKS: u16 = 8;
/// How far ahead of what they have seen the C library's string functions read.
const AHEAD: u64 = 160;

/// What bits of the shadow say of memory.
fn memory(bits: u8) -> Memory {
    match bits {
        bits if bits & FREED != 0 => Memory::Freed,
        bits if bits & BESIDE != 0 => Memory::Beside,
        _ => Memory::Tail,
    }
}

impl Engine {
    /// An access touches memory whose shadow is not blank.
    pub fn look_at_blocks(&mut self, pc: u64, access: Access, bits: u8) {
        // Inside an allocator nothing is tested.
        if self.cpu.shadow == BLANK_BASE {
            return;
        }
        let library = self.library(pc);
        let Some(heap) = &mut self.observed.screens.heap else { return };
        if library.as_ref().is_some_and(|library| heap.allocators.is_own(pc, library)) {
            return;
        }
        let reads_ahead = || {
            library.is_some()
                && self.process.memory.decode_one(pc).op0_register().is_vector_register()
        };
        let ahead = !access.write && reads_ahead();
        if ahead && self.look_at_reader(pc) {
            return;
        }
        let Some(heap) = &mut self.observed.screens.heap else { return };
        if heap.suspects(access, ahead) {
            self.suspect(pc, Suspicion::OutsideBlocks { access, memory: memory(bits) });
        }
    }
}

impl Heap {
    /// The live block that an address is in: where it begins and ends.
    fn holder(&self, address: u64) -> Option<Range<u64>> {
        let (begin, block) = self.live.range(..=address).next_back()?;
        // Whoever looks at granules asks for the whole last one.
        let end = block.end(*begin);
        (address < end.next_multiple_of(GRANULE)).then_some(*begin..end)
    }

    /// The same for a byte of its own.
    pub fn block_of(&self, address: u64) -> Option<Range<u64>> {
        self.holder(address).filter(|block| block.contains(&address))
    }

    /// Whether an access whose shadow is not blank is to be reported.
    fn suspects(&mut self, access: Access, reads_ahead: bool) -> bool {
        let Access { address, size, write } = access;
        let end = address.saturating_add(u64::from(size));
        let inside = |block: &Range<u64>| block.start <= address && end <= block.end;
        if self.holder(address).as_ref().is_some_and(inside) {
            self.tire(end - 1);
            return false;
        }
        if write || !reads_ahead {
            return true;
        }
        // String functions go on in whole vectors behind the first: into whatever is there. The first
        // begins where the string does, and is not aligned.
        let last = self.live.range(..end).next_back();
        let comes_from =
            |(at, block): (&u64, &HeapBlock)| block.end(*at).saturating_add(AHEAD) > address;
        let goes_on = address.is_multiple_of(u64::from(size));
        !last.is_some_and(comes_from) && !goes_on && Table.bits(address, 1) & FREED != 0
    }

    /// A last granule that is used all the time is worth less than what the looks cost.
    pub(super) fn tire(&mut self, address: u64) {
        let looks = self.looks.entry(address / GRANULE).or_default();
        *looks += 1;
        if *looks >= MOST_LOOKS {
            Table.paint(&Paint { range: address..address + 1, bits: 0 });
        }
    }
}
