//! What allocators do to values: pointers to new blocks, bytes of theirs that nobody wrote. What they do
//! to blocks is the model's ([`crate::model::heap`]).

use super::cells::Cell;
use super::chains::{Chains, Node, Stamp};
use super::tags::Tag;
use super::{ARGUMENTS, Machine, RESULT};
use crate::model::blocks;
use crate::model::heap::{AllocatorCall, Outcome, takes_block};
use crate::rules::state::{BlockId, Pointer};
use base::allocator::Allocator;

/// Bytes of a new block that are noted as unwritten.
const MOST_FRESH: u64 = 1 << 30;

/// What rules keep of the end of a block: the pointer that it was freed by, and its chain.
#[derive(Clone, Copy, Debug)]
pub struct Freed {
    /// The pointer.
    pub pointer: Pointer,
    /// Its chain.
    pub chain: Node,
    /// When, where ticks are counted.
    pub when: Option<Stamp>,
}

/// What rules know of a call of an allocator: the chain of its first argument, and when it was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given {
    /// The chain.
    pub chain: Node,
    /// When, where ticks are counted.
    pub when: Option<Stamp>,
}

/// All blocks of a process.
pub type Blocks = blocks::Blocks<Freed>;

/// A call of an allocator that has not returned.
pub type Inside = AllocatorCall<Given>;

impl Inside {
    /// Its first argument as a pointer.
    #[must_use]
    pub fn pointer(&self) -> Pointer {
        Pointer { address: self.arguments[0], block: self.block }
    }
}

impl Machine {
    /// A function of an allocator has been called by code that is not itself one's.
    pub fn enter(&mut self, inside: Inside) {
        self.thread().stores = None;
        self.thread().inside.enter(inside);
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

    /// The call of an allocator that has just returned, if it is the outermost one.
    pub fn leave(&mut self, stack: u64) -> Option<Inside> {
        self.thread().inside.leave(stack)
    }

    /// What an allocator's call has done, once it has returned.
    pub fn finish(&mut self, inside: &Inside, value: u64) {
        let Given { chain, when } = inside.data;
        let how = Freed { pointer: inside.pointer(), chain, when };
        let exact = self.needs.pointers;
        let outcome = self.blocks.finish(inside, value, self.time, (how, exact));
        let result = match outcome {
            Outcome::Allocated { block, written } => {
                self.hand_out(block, written);
                Some(block)
            }
            Outcome::Resized { block, before } => {
                self.grow(block, before);
                Some(block)
            }
            Outcome::Renewed { old, block, before } => {
                self.arithmetic.renewed(old, block);
                self.grow(block, before);
                Some(block)
            }
            Outcome::Stored(block) => {
                self.store_pointer(inside, block);
                None
            }
            Outcome::Nothing => None,
        };
        if let (
            Outcome::Allocated { block, .. }
            | Outcome::Renewed { block, .. }
            | Outcome::Stored(block),
            Some(when),
        ) = (outcome, when)
        {
            self.allocated_at.insert(block, when);
        }
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
    fn hand_out(&mut self, block: BlockId, written: u64) {
        let Some(block) = self.blocks.get(block) else { return };
        let (begin, size) = (block.facts.begin, block.facts.size);
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
    }

    /// A block has another size than before, at the same place.
    fn grow(&mut self, block: BlockId, before: u64) {
        let Some(block) = self.blocks.get(block) else { return };
        let grown = block.facts.size.saturating_sub(before);
        if self.watches_writes && grown > 0 {
            let behind = block.facts.begin.saturating_add(before);
            self.unwritten.insert(behind, grown.min(MOST_FRESH));
        }
    }

    /// `posix_memalign` stores the address: the stored pointer is the block's, wherever that is.
    fn store_pointer(&mut self, inside: &Inside, block: BlockId) {
        if let Some(begin) = self.thread().stores.take() {
            self.blocks.forget(begin, inside_size(&self.blocks, block));
            self.blocks.place(block, begin);
            self.hand_out(block, 0);
        }
        let place = self.chains.place(inside.back.wrapping_sub(1));
        let cell = Cell { tag: Tag::of(block), node: Chains::made(place) };
        self.memory.store(inside.arguments[0], cell);
    }
}

fn inside_size(blocks: &Blocks, block: BlockId) -> u64 {
    blocks.get(block).map_or(1, |block| block.facts.size.max(1))
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
    let by_address =
        || takes_block(allocator.role).then(|| machine.blocks.at_pointer(address)).flatten();
    // NULL is no pointer to anything, whatever it was made from.
    let block = match address {
        0 => None,
        _ => tagged.or_else(by_address),
    };
    let guessed = tagged.is_none();
    let calls = machine.running().calls.callers();
    // Without calls in the stream the return address is all there is.
    let callers = match calls.is_empty() {
        true => machine.stacks.keep_caller(back.wrapping_sub(1)),
        false => machine.keep_stack(calls),
    };
    let data = Given { chain: cell.node, when: machine.now() };
    Inside { allocator, function, back, stack, arguments, block, guessed, callers, data }
}
