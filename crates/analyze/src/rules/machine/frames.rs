//! The frames of the running thread: addresses taken in them, the variables there, and what calls,
//! returns and moves of the stack pointer do to them.

use super::cells::Cell;
use super::chains::Node;
use super::code::{Code, STACK_POINTER, StackMove, Transfer};
use super::tags::Tag;
use super::{Access, Machine, NEAR_STACK};
use crate::rules::model::{REGION_LEFT, REGION_STACK};
use crate::rules::state::{BlockFacts, BlockId};

/// How far below the first call of a thread its stack is taken to hold nothing.
const FRESH_STACK: u64 = 256 << 10;
/// What stands between a frame's variables and its upper end in any case.
const RETURN_ADDRESS: u64 = 8;

impl Machine {
    /// The address of something in the frame of the running function. Arguments on the stack
    /// belong to the caller.
    pub(super) fn frame_address(
        &mut self,
        register: u8,
        displacement: i64,
        function: u32,
        indexed: bool,
    ) -> Cell {
        let thread = self.thread();
        let base = if register == STACK_POINTER { thread.stack } else { thread.frame };
        let Some(base) = base else {
            // The frame pointer may be a register like any other; the stack pointer never is.
            return if register == STACK_POINTER {
                Cell::default()
            } else {
                thread.cells[register as usize]
            };
        };
        let address = base.wrapping_add_signed(displacement);
        let Some((slot, top)) = thread.calls.top() else { return Cell::default() };
        if address >= slot {
            return Cell::default();
        }
        let known = top.block;
        let offset = address.wrapping_sub(slot).wrapping_sub(RETURN_ADDRESS) as i64;
        if let Some(size) = self.locals.find(function, offset, indexed) {
            let block = self.local_block(address, size);
            return Cell { tag: Tag::of(block), node: Node::default() };
        }
        let block = known.unwrap_or_else(|| self.add_frame(slot));
        Cell { tag: Tag::of(block), node: Node::default() }
    }

    /// The block of a variable in the innermost frame.
    fn local_block(&mut self, begin: u64, size: u64) -> BlockId {
        let top = self.thread().calls.top();
        let known =
            top.and_then(|(_, top)| top.locals.iter().find(|(at, _)| *at == begin).copied());
        if let Some((_, block)) = known {
            return block;
        }
        let block = self.add_to_frame(begin, size);
        if let Some((_, top)) = self.thread().calls.top() {
            top.locals.push((begin, block));
        }
        block
    }

    fn add_to_frame(&mut self, begin: u64, size: u64) -> BlockId {
        let facts = BlockFacts { begin, size, time: self.time, family: 0, region: REGION_STACK };
        let callers = self.thread().calls.callers();
        let stack = self.keep_stack(callers);
        self.blocks.add(facts, stack, false)
    }

    fn add_frame(&mut self, slot: u64) -> BlockId {
        let begin = slot.saturating_sub(NEAR_STACK);
        let block = self.add_to_frame(begin, slot - begin);
        if let Some((_, top)) = self.thread().calls.top() {
            top.block = Some(block);
        }
        block
    }

    pub(super) fn follow_stack(&mut self, code: &Code, accesses: &[Access]) {
        if !code.moves_stack {
            return;
        }
        let Self { threads, blocks, unwritten, memory, mappings, watches_writes, needs, .. } = self;
        let thread = threads.now_mut();
        let mut left = |block: BlockId| {
            if let Some(block) = blocks.get_mut(block) {
                block.facts.region = REGION_LEFT;
            }
        };
        let pushed = accesses.iter().rev().find(|access| access.write).map(|access| access.address);
        let popped = accesses.first().filter(|access| !access.write).map(|access| access.address);
        match (code.transfer, pushed) {
            (Transfer::Call, Some(slot)) => {
                if thread.low == 0 {
                    (thread.low, thread.area) = (slot, mappings.stack_at(slot));
                    if *watches_writes {
                        let from = slot.saturating_sub(FRESH_STACK).max(thread.area.start);
                        unwritten.insert(from, slot - from);
                    }
                }
                thread.calls.call(code.pc, slot, thread.frame.take(), &mut left);
            }
            (Transfer::Return, _) => {
                if let Some(slot) = popped {
                    thread.frame = thread.calls.ret(slot, &mut left);
                }
                // Handlers and coroutines have stacks of their own, of which less is known.
                if let Some(slot) = popped.filter(|slot| thread.area.contains(slot)) {
                    if thread.low < slot && slot - thread.low < NEAR_STACK {
                        // What the function left on the stack is nobody's.
                        let dead = slot + 8 - thread.low;
                        if *watches_writes {
                            unwritten.insert(thread.low, dead);
                        }
                        if needs.pointers {
                            memory.clear(thread.low, dead);
                        }
                    }
                    thread.low = slot + 8;
                }
            }
            _ => {}
        }
        match code.stack {
            StackMove::None => {}
            StackMove::By(bytes) => {
                thread.stack = thread.stack.map(|at| at.wrapping_add_signed(bytes));
            }
            StackMove::Push => thread.stack = pushed,
            StackMove::Pop(bytes) => {
                thread.stack = popped.map(|at| at.wrapping_add(u64::from(bytes)));
            }
            StackMove::Enter => thread.frame = thread.stack,
            StackMove::Lost => thread.stack = None,
        }
        if code.loses_frame {
            thread.frame = None;
        }
    }

    /// How far down the stack has been written.
    pub(super) fn follow_low(&mut self, accesses: &[Access]) {
        let thread = self.threads.now_mut();
        for access in accesses.iter().filter(|access| access.write) {
            let near = access.address < thread.low && thread.low - access.address < NEAR_STACK;
            if near && thread.area.contains(&access.address) {
                thread.low = access.address;
            }
        }
    }
}
