//! A part of a run that is followed: a **window**.
//!
//! Up to its beginning only allocations are told, so that every block is known. Of what registers and
//! memory hold then nobody knows what it was made from, and it carries the tag of a block that stands for
//! anything; whatever is made from it carries that too. What is decided in a window without meeting this
//! tag is decided as if all of the run had been followed. Bytes count as written unless they are seen to
//! become somebody's in the window, so what is found to be unwritten is.

use super::cells::{Cell, Memory};
use super::chains::Chains;
use super::numbers::Numbers;
use super::tags::Tag;
use super::unwritten::Unwritten;
use super::{Machine, Thread};
use crate::rules::state::{BlockFacts, BlockId};

/// Superseded blocks that are kept before they are given up.
const MOST_GONE: usize = 1 << 20;

/// What the running thread is doing where a window begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Its stack pointer.
    pub stack: u64,
    /// The active calls, outermost first: the address of each, and where its return address stands.
    pub calls: Vec<(u64, u64)>,
}

impl Machine {
    /// From here on everything is told.
    pub fn begin_window(&mut self, start: &Start) {
        let facts = BlockFacts { begin: 0, size: u64::MAX, time: 0, family: 0, region: 0 };
        let before = self.blocks.add(facts, 0, false);
        let cell = Cell { tag: Tag::of(before), node: Chains::before() };
        self.before = Some(before);
        self.arithmetic.begin_window(cell.tag);
        self.memory = Memory::unknown(cell);
        (self.unwritten, self.numbers) = (Unwritten::default(), Numbers::default());
        for thread in self.threads.all_mut() {
            *thread = Thread { inside: std::mem::take(&mut thread.inside), ..Thread::default() };
            thread.cells.fill(cell);
        }
        let thread = self.thread();
        thread.stack = Some(start.stack);
        for (pc, slot) in &start.calls {
            thread.calls.call(*pc, *slot, None, |_| ());
        }
    }

    /// Whether a pointer is older than the window.
    #[must_use]
    pub fn is_from_before(&self, block: Option<BlockId>) -> bool {
        block.is_some() && block == self.before
    }

    /// Gives up blocks that have gone and whose memory others have, if there are many. Only while
    /// nothing but allocations is told: nobody else has their numbers.
    pub fn condense(&mut self) {
        if self.blocks.count() < MOST_GONE + 2 * self.blocks.placed() {
            return;
        }
        self.blocks.condense();
        let inside = self.threads.all_mut().flat_map(|thread| &mut thread.inside);
        inside.for_each(|inside| inside.pointer.block = None);
    }
}
