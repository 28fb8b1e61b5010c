//! The frames of the running thread: addresses taken in them, the variables there, and what calls,
//! returns and moves of the stack pointer do to them.

use super::cells::Cell;
use super::chains::Node;
use super::code::{Code, STACK_POINTER, StackMove, Transfer};
use super::locals::{LARGEST, VariableAt};
use super::tags::Tag;
use super::{Access, Freed, Machine, NEAR_STACK, RESULT};
use crate::model::blocks::Block;
use crate::model::variables::DOUBTFUL;
use crate::rules::model::{REGION_GLOBAL, REGION_LEFT, REGION_STACK};
use crate::rules::state::{BlockFacts, BlockId};

/// Few stacks are larger, and nobody leaves a variable so far behind by mistake and goes on.
const LARGEST_STACK: u64 = 64 << 20;

/// How far below the first call of a thread its stack is taken to hold nothing.
const FRESH_STACK: u64 = 256 << 10;
/// What stands between a frame's variables and its upper end in any case.
const RETURN_ADDRESS: u64 = 8;

impl Machine {
    /// The address of something in the frame of the running function, made by the instruction at `pc`.
    /// Arguments on the stack belong to the caller.
    pub(super) fn frame_address(
        &mut self,
        register: u8,
        displacement: i64,
        (function, pc): (u32, u64),
        indexed: bool,
    ) -> Cell {
        if self.is_excused(pc) {
            // Go's runtime moves stacks, and with them what points into them.
            return Cell::default();
        }
        let thread = self.thread();
        let base = if register == STACK_POINTER { thread.stack } else { thread.frame };
        let Some(base) = base else {
            // The frame pointer may be a register like any other; the stack pointer never is.
            return match register {
                STACK_POINTER => self.made_room(displacement),
                _ => thread.cells[register as usize],
            };
        };
        let address = base.wrapping_add_signed(displacement);
        let Some((slot, top)) = thread.calls.top() else { return Cell::default() };
        if address >= slot || top.moved {
            return Cell::default();
        }
        let (known, dynamic) = (top.block, !top.dynamic.is_empty());
        let offset = address.wrapping_sub(slot).wrapping_sub(RETURN_ADDRESS) as i64;
        let block = if let Some(found) = self.locals.find(function, offset, pc, indexed) {
            self.local_block(slot, found, pc)
        } else if let Some(block) = dynamic.then(|| self.dynamic_at(address)).flatten() {
            block
        } else {
            known.unwrap_or_else(|| self.add_frame(slot, pc))
        };
        Cell { tag: Tag::of(block), node: Node::default() }
    }

    /// What the stack pointer carries where it is copied to the frame pointer: a variable, if one begins there.
    /// Else it is the beginning of a frame. Compilers take it for other variables, too.
    pub(super) fn lowest_variable(&mut self, (function, pc): (u32, u64)) -> Cell {
        let thread = self.thread();
        let Some((address, (slot, _))) = thread.stack.zip(thread.calls.top()) else {
            return Cell::default();
        };
        let offset = address.wrapping_sub(slot).wrapping_sub(RETURN_ADDRESS) as i64;
        let found = self.locals.find(function, offset, pc, true).filter(|_| address < slot);
        let block = found.map(|found| self.local_block(slot, found, pc));
        let tag = block.map(Tag::of).unwrap_or_default();
        Cell { tag, node: Node::default() }
    }

    /// The block of a variable in the innermost frame.
    fn local_block(&mut self, slot: u64, found: VariableAt, pc: u64) -> BlockId {
        let VariableAt { number, offset, size } = found;
        let top = self.thread().calls.top();
        let known =
            top.and_then(|(_, top)| top.locals.iter().find(|(at, _)| *at == number).copied());
        if let Some((_, block)) = known {
            return block;
        }
        let begin = slot.wrapping_add(RETURN_ADDRESS).wrapping_add_signed(offset);
        let block = self.add_to_frame(begin, size, (number, pc));
        if let Some((_, top)) = self.thread().calls.top() {
            top.locals.push((number, block));
        }
        block
    }

    pub(super) fn add_to_frame(
        &mut self,
        begin: u64,
        size: u64,
        (variable, pc): (u32, u64),
    ) -> BlockId {
        let facts = BlockFacts { begin, size, time: self.time, family: 0, region: REGION_STACK };
        let callers = self.thread().calls.stack(pc);
        let stack = self.keep_stack(callers);
        self.blocks.add_variable(facts, stack, variable)
    }

    fn add_frame(&mut self, slot: u64, pc: u64) -> BlockId {
        let begin = slot.saturating_sub(NEAR_STACK);
        let block = self.add_to_frame(begin, slot - begin, (0, pc));
        if let Some((_, top)) = self.thread().calls.top() {
            top.block = Some(block);
        }
        block
    }

    /// The variable in a frame that an address is in, where the running function is at `pc`: a block for it.
    pub fn variable_at(&mut self, address: u64, pc: u64) -> Option<BlockId> {
        let (slot, at) = self.running().calls.around(address, pc)?;
        let function = self.locals.function(at);
        let offset = address.wrapping_sub(slot).wrapping_sub(RETURN_ADDRESS) as i64;
        let found = self.locals.around(function, offset, at)?;
        let begin = slot.wrapping_add(RETURN_ADDRESS).wrapping_add_signed(found.offset);
        Some(self.add_to_frame(begin, found.size, (found.number, at)))
    }

    /// Whether an access that leaves its variable may be to another one that its pointer was made from.
    #[must_use]
    pub fn is_doubtful(&self, block: &Block<Freed>, address: u64, size: u64) -> bool {
        let waits = || self.waits_at(block);
        let facts = &block.facts;
        match (facts.region, block.variable) {
            // The rest of a difference of pointers, as an index into a table somewhere else.
            (REGION_STACK, _) if address.abs_diff(facts.begin) > LARGEST_STACK => true,
            (REGION_GLOBAL, DOUBTFUL) => self.variables.is_doubtful(facts.begin, address, size),
            (REGION_STACK, number @ 1..=LARGEST) => {
                let from = address.wrapping_sub(facts.begin) as i64;
                self.locals.is_doubtful(number, from, size, waits())
            }
            _ => false,
        }
    }

    /// The call that the function of a local variable waits for, if it does.
    fn waits_at(&self, block: &Block<Freed>) -> Option<u64> {
        let offset = self.locals.offset(block.variable)?;
        let slot = block.facts.begin.wrapping_sub(RETURN_ADDRESS).wrapping_add_signed(-offset);
        self.running().calls.waits_at(slot)
    }

    /// Whether a variable has only been given back by the end of its function, whose last instructions may yet read
    /// it.
    #[must_use]
    pub fn is_at_end(&self, id: BlockId, block: &Block<Freed>, pc: u64) -> bool {
        let local = block.facts.region == REGION_LEFT && (1..=LARGEST).contains(&block.variable);
        local
            && self.running().calls.has_given_back(id)
            && self.locals.is_in_function(block.variable, pc)
    }

    /// The stack pointer has moved up: the variables that are below it now are gone, though their function may go on
    /// as another one that it ends in.
    fn give_back(&mut self, before: u64, now: u64) {
        let Self { threads, blocks, .. } = self;
        let Some((_, top)) = threads.now_mut().calls.top() else { return };
        let (locals, given_back) = (&mut top.locals, &mut top.given_back);
        locals.retain(|(_, id)| {
            let Some(block) = blocks.get_mut(*id) else { return true };
            let gone = block.facts.begin >= before && block.end() <= now;
            if gone {
                block.facts.region = REGION_LEFT;
                given_back.push(*id);
            }
            !gone
        });
    }

    /// A block of one region has another from here on. Whether it was of that region.
    pub fn set_region(&mut self, id: BlockId, from: i64, to: i64) -> bool {
        let block = self.blocks.get_mut(id).filter(|block| block.facts.region == from);
        block.map(|block| block.facts.region = to).is_some()
    }

    /// Whether the block of code that declares a variable has been left, where the running function is at
    /// `pc`.
    #[must_use]
    pub fn is_out_of_scope(&self, block: &Block<Freed>, pc: u64) -> bool {
        let number = block.variable;
        if block.facts.region != REGION_STACK || !self.locals.has_scope(number) {
            return false;
        }
        let Some(offset) = self.locals.offset(number) else { return false };
        let slot = block.facts.begin.wrapping_sub(RETURN_ADDRESS).wrapping_add_signed(-offset);
        let thread = self.running();
        let stale = thread.stack.is_some_and(|stack| slot < stack);
        let at = thread.calls.pc_in(slot, pc).filter(|_| !stale);
        let calls = thread.calls.waits_at(slot).is_some();
        at.is_some_and(|at| self.locals.is_left(number, at, calls))
    }

    /// The stack pointer has moved up. Where that is past the return address, the function has taken it away, to put it
    /// somewhere else, as V8's builtins do before they end in another one: where its frame is nobody knows then.
    fn follow_return_address(&mut self, now: u64) {
        let Self { threads, blocks, .. } = self;
        let Some((slot, top)) = threads.now_mut().calls.top() else { return };
        if now <= slot || now - slot > LARGEST_STACK || top.moved {
            return;
        }
        top.moved = true;
        let own = top.block.into_iter().chain(top.locals.drain(..).map(|(_, block)| block));
        for block in own {
            if let Some(block) = blocks.get_mut(block) {
                block.facts.region = 0;
            }
        }
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
                    if thread.library.take_if(|library| *library <= slot).is_some() {
                        thread.registers.set_general(RESULT as u8, 0, None);
                    }
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
        let before = thread.stack;
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
            StackMove::FromFrame(bytes) => {
                thread.stack = thread.frame.map(|at| at.wrapping_add_signed(bytes));
            }
            StackMove::Lost => thread.stack = thread.making.take(),
            StackMove::MakeRoom => thread.stack = None,
        }
        if code.loses_frame {
            thread.frame = None;
        }
        if let (Some(before), Some(now), Transfer::None) = (before, thread.stack, code.transfer)
            && before < now
        {
            if thread.calls.has_locals() {
                self.give_back(before, now);
            }
            self.follow_return_address(now);
        }
        let returned = code.transfer == Transfer::Return;
        self.follow_room(code, (before, pushed), returned);
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
