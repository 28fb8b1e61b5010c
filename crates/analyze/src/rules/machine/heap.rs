//! What allocators do to the heap: blocks that come, go and change their size.

use super::blocks::{self, Release};
use super::cells::Cell;
use super::chains::Chains;
use super::tags::Tag;
use super::{ARGUMENTS, Inside, Machine, RESULT};
use crate::rules::model::REGION_HEAP;
use crate::rules::state::{BlockFacts, BlockId, Pointer};
use base::allocator::{Allocator, Role};

/// Bytes of a new block that are noted as unwritten.
const MOST_FRESH: u64 = 1 << 30;

impl Machine {
    /// A function of an allocator has been called by code that is not itself one's.
    pub fn enter(&mut self, inside: Inside) {
        let thread = self.thread();
        thread.leave_below(inside.stack, inside.back);
        thread.inside.push(inside);
    }

    /// What was known of the heap is not so any more.
    pub fn forget_heap(&mut self) {
        self.blocks.forget_all();
        self.thread().inside.clear();
    }

    /// Whether the running thread is inside an allocator.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        !self.running().inside.is_empty()
    }

    /// The call of an allocator that has just returned, if it is the outermost one. Functions that
    /// end in a jump to another return together with it. One that goes through the heap may allocate as
    /// anybody does: `malloc_info` prints.
    pub fn leave(&mut self, stack: u64) -> Option<Inside> {
        let thread = self.thread();
        let at = thread.inside.iter().position(|inside| inside.stack <= stack)?;
        let found = thread.inside[at];
        thread.inside.truncate(at);
        thread.inside.iter().all(|outer| outer.allocator.role == Role::Tend).then_some(found)
    }

    /// What an allocator's call has done, once it has returned.
    pub fn finish(&mut self, inside: &Inside, value: u64) {
        let result = match inside.allocator.role {
            Role::Allocate(size, count) => {
                let size = inside.size(size, count);
                let written = if inside.allocator.zeroed { size } else { 0 };
                (value != 0).then(|| self.allocate(value, size, inside, written))
            }
            Role::AllocateFixed(bytes) => {
                (value != 0).then(|| self.allocate(value, bytes, inside, 0))
            }
            Role::Resize(size, count) => self.resize(inside, inside.size(size, count), value),
            Role::AllocateTo(size) => {
                if value == 0 {
                    self.allocate_to(inside, inside.size(size, None));
                }
                None
            }
            Role::Free => {
                self.free(inside);
                None
            }
            Role::Measure => {
                self.measure(inside.arguments[0], value);
                None
            }
            Role::Tend => None,
        };
        if !self.needs.pointers && !self.watches_writes {
            return;
        }
        let place = self.chains.place(inside.back.wrapping_sub(1));
        let tag = result.map(Tag::of).unwrap_or_default();
        let thread = self.thread();
        thread.cells[RESULT] = Cell { tag, node: Chains::made(place) };
        thread.registers.set_general(RESULT as u8, 0, None);
    }

    /// A new block. Its bytes were written by nobody but for the first `written`.
    fn allocate(&mut self, begin: u64, size: u64, inside: &Inside, written: u64) -> BlockId {
        let family = inside.allocator.family;
        let facts = BlockFacts { begin, size, time: self.time, family, region: REGION_HEAP };
        let stack = inside.callers;
        if self.needs.pointers && written == 0 {
            self.memory.clear(begin, size);
        }
        if self.watches_writes {
            if written >= size {
                self.unwritten.remove(begin, size);
            } else {
                // A size that nobody has memory for is a wrong one.
                let fresh = (size - written).min(MOST_FRESH);
                self.unwritten.insert(begin.saturating_add(written), fresh);
            }
        }
        self.blocks.allocate(facts, stack)
    }

    /// `posix_memalign` stores the address: the stored pointer is the block's, wherever that is.
    fn allocate_to(&mut self, inside: &Inside, size: u64) {
        let family = inside.allocator.family;
        let facts = BlockFacts { begin: 0, size, time: self.time, family, region: REGION_HEAP };
        let stack = inside.callers;
        let block = self.blocks.add(facts, stack, true);
        let place = self.chains.place(inside.back.wrapping_sub(1));
        let cell = Cell { tag: Tag::of(block), node: Chains::made(place) };
        self.memory.store(inside.arguments[0], cell);
    }

    fn resize(&mut self, inside: &Inside, size: u64, value: u64) -> Option<BlockId> {
        let old = inside.pointer;
        let known = self.block_of_freed(old);
        if value == 0 {
            if size == 0 {
                self.free(inside);
            }
            return None;
        }
        if let (Some(id), true) = (known, value == old.address) {
            // In place it stays the same block.
            let (grown, before) = {
                let block = self.blocks.get_mut(id)?;
                let before = block.facts.size;
                block.facts.size = size;
                (size.saturating_sub(before), before)
            };
            if self.watches_writes && grown > 0 {
                self.unwritten.insert(value.saturating_add(before), grown.min(MOST_FRESH));
            }
            return Some(id);
        }
        let kept = known.and_then(|id| self.blocks.get(id)).map_or(0, |block| block.facts.size);
        if old.address != 0 {
            self.free(inside);
        }
        // What was copied keeps what it carried.
        let id = self.allocate(value, size, inside, kept.min(size).max(1));
        Some(id)
    }

    /// The live block that a pointer that is freed stands for.
    #[must_use]
    pub fn block_of_freed(&self, pointer: Pointer) -> Option<BlockId> {
        let live = |id: &BlockId| self.blocks.get(*id).is_some_and(blocks::Block::is_live);
        pointer
            .block
            .filter(live)
            .or_else(|| self.blocks.beginning_at(pointer.address).filter(live))
    }

    fn free(&mut self, inside: &Inside) {
        let Some(id) = self.block_of_freed(inside.pointer) else { return };
        let Some(block) = self.blocks.get(id) else { return };
        if block.unplaced {
            if inside.guessed && self.needs.pointers {
                return; // to say that it is freed the pointer would have to be its
            }
            self.blocks.place(id, inside.pointer.address);
        } else if block.facts.begin != inside.pointer.address {
            return;
        }
        let stack = inside.callers;
        let (time, pointer) = (self.time, inside.pointer);
        self.blocks.release(id, Release { time, pointer, chain: inside.chain, stack });
    }

    fn measure(&mut self, begin: u64, usable: u64) {
        if let Some(id) = self.blocks.beginning_at(begin)
            && let Some(block) = self.blocks.get_mut(id)
        {
            block.facts.size = block.facts.size.max(usable);
        }
    }
}

/// A call of an allocator that is about to begin.
#[must_use]
pub fn about_to(
    machine: &mut Machine,
    allocator: Allocator,
    function: u64,
    back: u64,
    stack: u64,
    arguments: [u64; 6],
) -> Inside {
    let cell = machine.thread().cells[ARGUMENTS[0]];
    let address = arguments[0];
    let tagged =
        machine.resolve(cell.tag, address).filter(|block| !machine.is_from_before(Some(*block)));
    // Where the first argument is a size, there is no block to look for.
    let is_pointer = matches!(allocator.role, Role::Free | Role::Resize(..) | Role::Measure);
    let by_address = || {
        let blocks = &machine.blocks;
        let there = blocks.beginning_at(address);
        let live = there.filter(|id| blocks.get(*id).is_some_and(blocks::Block::is_live));
        // What is known of this memory may be older than a block whose address nobody has told.
        live.or_else(|| blocks.unplaced()).or(there).or_else(|| blocks.containing(address))
    };
    // NULL is no pointer to anything, whatever it was made from.
    let block = match address {
        0 => None,
        _ => tagged.or_else(|| if is_pointer { by_address() } else { None }),
    };
    let pointer = Pointer { address, block };
    let guessed = tagged.is_none();
    let calls = machine.running().calls.callers();
    // Without calls in the stream the return address is all there is.
    let callers = match calls.is_empty() {
        true => machine.keep_caller(back.wrapping_sub(1)),
        false => machine.keep_stack(calls),
    };
    let chain = cell.node;
    Inside { allocator, function, back, stack, arguments, pointer, guessed, chain, callers }
}
