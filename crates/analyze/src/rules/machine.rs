//! The abstract machine of a real execution, kept up to date from the events of one process.
//!
//! - [`blocks`]: heap blocks, never the same twice;
//! - [`variables`]: blocks of variables with static storage;
//! - [`cells`]: the block that each pointer in a register or in memory was made from;
//! - [`chains`]: by which copies a value came;
//! - [`unwritten`], [`registers`]: bits that nobody wrote; [`bitwise`]: what becomes of them;
//! - [`calls`]: the active calls; [`allocator`]: which functions make and free blocks;
//! - [`contents`]: what stands in memory, where rules ask; [`descriptors`]: which are open;
//! - [`code`]: what an instruction does to all this, compiled once;
//! - [`view`]: the machine as rules see it.
//!
//! It knows no rules. Whoever does asks it *before* it is told that something has happened, so that
//! a rule fires before the error.

pub mod allocator;
pub mod bitwise;
pub mod blocks;
pub mod calls;
pub mod cells;
pub mod chains;
pub mod code;
pub mod contents;
pub mod descriptors;
pub mod registers;
mod thread;
pub mod unwritten;
pub mod variables;
pub mod view;

use super::model::{EventKind, REGION_HEAP, REGION_LEFT, REGION_STACK};
use super::needs::Needs;
use super::state::{BlockFacts, BlockId, Pointer, TraceEvent, Value};
use allocator::{Allocator, Role};
use blocks::{Blocks, Release, StackId};
use cells::{Arithmetic, Cell, Memory, Tag};
use chains::{Chains, Node};
use code::{Action, Code, FRAME_POINTER, Place, STACK_POINTER, StackMove};
use contents::Contents;
use descriptors::Descriptors;
pub use registers::Origin;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
pub use thread::{Inside, Thread};
use unwritten::Unwritten;
use variables::Variables;

/// One access to memory as the stream tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    /// Whether it writes.
    pub write: bool,
}

/// Calls and returns of a function that are remembered.
const MOST_CALLS: usize = 4096;
/// How far below the first call of a thread its stack is taken to hold nothing.
const FRESH_STACK: u64 = 256 << 10;
/// Bytes of a new block that are noted as unwritten.
const MOST_FRESH: u64 = 1 << 30;
/// How far below a call writes are taken to be to its stack.
const NEAR_STACK: u64 = 1 << 20;
/// The cell of rax, and of the first arguments.
const RESULT: usize = 0;
/// rdi, rsi, rdx, rcx, r8, r9.
pub const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];

/// The machine.
#[derive(Default)]
pub struct Machine {
    /// What has to be kept.
    pub needs: Needs,
    /// Whether the bytes that nobody wrote have to be kept.
    pub watches_writes: bool,
    /// Instructions executed so far.
    pub time: u64,
    /// Blocks.
    pub blocks: Blocks,
    /// Chains.
    pub chains: Chains,
    /// Descriptors.
    pub descriptors: Descriptors,
    /// Bits of memory that nobody wrote.
    pub unwritten: Unwritten,
    /// Variables with static storage.
    pub variables: Variables,
    /// What stands in memory, where rules ask for that.
    pub contents: Contents,
    memory: Memory,
    arithmetic: Arithmetic,
    threads: FxHashMap<u32, Thread>,
    current: u32,
    stacks: Vec<Vec<u64>>,
    stack_numbers: FxHashMap<Vec<u64>, StackId>,
    /// Stacks of one call, by its address.
    callers: FxHashMap<u64, StackId>,
    /// Calls and returns of the functions that rules name.
    history: FxHashMap<(EventKind, String), VecDeque<TraceEvent>>,
    /// Whether blocks exist whose address only a pointer's tag can tell.
    pub has_unplaced: bool,
    pending: Vec<(Place, Cell)>,
}

impl Machine {
    /// A machine that keeps what is needed.
    #[must_use]
    pub fn new(needs: Needs, watches_writes: bool) -> Self {
        // Number 0 is the empty stack.
        let stacks = vec![Vec::new()];
        Self { needs, watches_writes, stacks, ..Self::default() }
    }

    /// The thread that runs.
    pub fn thread(&mut self) -> &mut Thread {
        self.threads.entry(self.current).or_default()
    }

    /// The thread that runs, if anything is known of it.
    #[must_use]
    pub fn running(&self) -> Option<&Thread> {
        self.threads.get(&self.current)
    }

    /// All threads.
    pub fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values()
    }

    /// From here on this thread runs.
    pub fn switch(&mut self, thread: u32) {
        self.current = thread;
    }

    /// What memory carries.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The calls of a kept stack, innermost first.
    #[must_use]
    pub fn stack(&self, id: StackId) -> &[u64] {
        self.stacks.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// Keeps a stack.
    pub fn keep_stack(&mut self, stack: Vec<u64>) -> StackId {
        if let Some(known) = self.stack_numbers.get(&stack) {
            return *known;
        }
        let id = self.stacks.len() as StackId;
        self.stacks.push(stack.clone());
        self.stack_numbers.insert(stack, id);
        id
    }

    /// Keeps a stack of one call.
    fn keep_caller(&mut self, pc: u64) -> StackId {
        if let Some(known) = self.callers.get(&pc) {
            return *known;
        }
        let id = self.keep_stack(vec![pc]);
        self.callers.insert(pc, id);
        id
    }

    /// The pointer through which an access goes, and its chain.
    pub fn pointer(&mut self, code: &Code, slot: usize, address: u64) -> (Pointer, Node) {
        let Some(how) = code.pointers.get(slot) else {
            return (Pointer { address, block: None }, Node::default());
        };
        if how.indexed
            && let Some(base @ (STACK_POINTER | FRAME_POINTER)) = how.base
        {
            // An element of an array in the frame.
            let cell = self.frame_address(base, how.displacement);
            return (Pointer { address, block: cell.tag.block() }, cell.node);
        }
        if how.base.is_none() && how.indexed {
            // An element of a variable whose address stands in the instruction.
            let tag = self.variables.tag(how.displacement as u64, &mut self.blocks);
            return (Pointer { address, block: tag.block() }, Node::default());
        }
        let Self { threads, arithmetic, current, .. } = self;
        let cells = &threads.entry(*current).or_default().cells;
        let cell = |index: Option<u8>| index.map(|index| cells[index as usize]).unwrap_or_default();
        let (base, index) = (cell(how.base), cell(how.index));
        let tag = arithmetic.sum(base.tag, index.tag);
        let node = if base.tag.is_none() && !index.tag.is_none() { index.node } else { base.node };
        (Pointer { address, block: tag.block() }, node)
    }

    /// Whether any register of the address could hold a pointer: the stack pointer does not count.
    #[must_use]
    pub fn goes_through_pointer(code: &Code, slot: usize) -> bool {
        let through = |how: &code::Pointer| how.base.is_some_and(|base| base != STACK_POINTER);
        code.pointers.get(slot).is_some_and(|how| through(how) || how.indexed)
    }

    /// An instruction has executed, with these accesses.
    pub fn execute(&mut self, code: &Code, accesses: &[Access]) {
        self.time += 1;
        self.follow_low(accesses);
        if self.watches_writes {
            self.follow_writes(code, accesses);
        }
        if self.needs.pointers {
            self.follow_cells(code, accesses);
        }
        self.follow_stack(code, accesses);
    }

    fn follow_cells(&mut self, code: &Code, accesses: &[Access]) {
        if code.moves {
            if let Some((to, from, size)) = moved(accesses) {
                self.memory.copy(to, from, size);
            }
            return;
        }
        let matched = accesses.len() == code.pointers.len();
        if !matched || !code.wiped.is_empty() {
            for access in accesses.iter().filter(|access| access.write) {
                self.memory.clear(access.address, u64::from(access.size));
            }
        }
        let mut pending = std::mem::take(&mut self.pending);
        for action in &code.actions {
            pending.push(self.result(*action, code, accesses, matched));
        }
        for (place, cell) in pending.drain(..) {
            match place {
                Place::Cell(STACK_POINTER) => {}
                Place::Cell(index) => self.thread().cells[index as usize] = cell,
                Place::Memory(slot, offset) if matched => {
                    let address = accesses[slot as usize].address.wrapping_add(u64::from(offset));
                    let node = match code.saves {
                        true => cell.node,
                        false => self.chains.stored(code.place, cell.node),
                    };
                    self.memory.store(address, Cell { node, ..cell });
                }
                _ => {}
            }
        }
        self.pending = pending;
    }

    fn result(
        &mut self,
        action: Action,
        code: &Code,
        accesses: &[Access],
        matched: bool,
    ) -> (Place, Cell) {
        let made = Chains::made(code.place);
        match action {
            Action::Copy(to, from) => (to, self.read(from, accesses, matched)),
            Action::Make(to) => (to, Cell { tag: Tag::default(), node: made }),
            Action::Address(to, address) => {
                let tag = self.variables.tag(address, &mut self.blocks);
                (to, Cell { tag, node: made })
            }
            Action::Sum(to, left, right) => {
                let (left, right) =
                    (self.read(left, accesses, matched), self.read(right, accesses, matched));
                (to, Cell { tag: self.arithmetic.sum(left.tag, right.tag), node: made })
            }
            Action::Difference(to, left, right) => {
                let (left, right) =
                    (self.read(left, accesses, matched), self.read(right, accesses, matched));
                (to, Cell { tag: self.arithmetic.difference(left.tag, right.tag), node: made })
            }
        }
    }

    fn read(&mut self, place: Place, accesses: &[Access], matched: bool) -> Cell {
        match place {
            Place::Cell(index) => self.thread().cells[index as usize],
            Place::Memory(slot, offset) if matched => {
                let address = accesses[slot as usize].address.wrapping_add(u64::from(offset));
                self.memory.load(address)
            }
            Place::Stack(register, displacement) => self.frame_address(register, displacement),
            Place::Memory(..) | Place::Nothing => Cell::default(),
        }
    }

    /// The address of something in the frame of the running function. Arguments on the stack
    /// belong to the caller.
    fn frame_address(&mut self, register: u8, displacement: i64) -> Cell {
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
        let Some(top) = thread.calls.top() else { return Cell::default() };
        if address >= top.slot {
            return Cell::default();
        }
        let (slot, known) = (top.slot, top.block);
        let block = known.unwrap_or_else(|| self.add_frame(slot));
        Cell { tag: Tag::of(block), node: Node::default() }
    }

    fn add_frame(&mut self, slot: u64) -> BlockId {
        let begin = slot.saturating_sub(NEAR_STACK);
        let (size, time) = (slot - begin, self.time);
        let facts = BlockFacts { begin, size, time, family: 0, region: REGION_STACK };
        let callers = self.thread().calls.callers();
        let stack = self.keep_stack(callers);
        let block = self.blocks.add(facts, stack, false);
        if let Some(top) = self.thread().calls.top() {
            top.block = Some(block);
        }
        block
    }

    fn follow_stack(&mut self, code: &Code, accesses: &[Access]) {
        let Self { threads, current, blocks, unwritten, memory, watches_writes, needs, .. } = self;
        let thread = threads.entry(*current).or_default();
        let mut left = |block: BlockId| {
            if let Some(block) = blocks.get_mut(block) {
                block.facts.region = REGION_LEFT;
            }
        };
        let pushed = accesses.iter().rev().find(|access| access.write).map(|access| access.address);
        let popped = accesses.first().filter(|access| !access.write).map(|access| access.address);
        match (code.meaning.form, pushed) {
            (
                crate::semantics::Form::Call(_) | crate::semantics::Form::IndirectCall,
                Some(slot),
            ) => {
                if thread.low == 0 {
                    thread.low = slot;
                    if *watches_writes {
                        unwritten.insert(slot.saturating_sub(FRESH_STACK), FRESH_STACK);
                    }
                }
                thread.calls.call(code.pc, slot, thread.frame.take(), &mut left);
            }
            (crate::semantics::Form::Return, _) => {
                if let Some(slot) = popped {
                    thread.frame = thread.calls.ret(slot, &mut left);
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
        if let crate::semantics::Form::Plain = code.meaning.form
            && code.writes_frame_pointer
            && code.stack != StackMove::Enter
        {
            thread.frame = None;
        }
    }

    /// How far down the stack has been written.
    fn follow_low(&mut self, accesses: &[Access]) {
        let thread = self.threads.entry(self.current).or_default();
        for access in accesses.iter().filter(|access| access.write) {
            if access.address < thread.low && thread.low - access.address < NEAR_STACK {
                thread.low = access.address;
            }
        }
    }

    fn follow_writes(&mut self, code: &Code, accesses: &[Access]) {
        let Self { threads, current, unwritten, .. } = self;
        let thread = threads.entry(*current).or_default();
        if code.moves {
            if let Some((to, from, size)) = moved(accesses) {
                unwritten.copy(to, from, size);
            }
            return;
        }
        thread.follow(code, accesses, unwritten);
    }

    /// A function of an allocator has been called by code that is not itself one's.
    pub fn enter(&mut self, inside: Inside) {
        let thread = self.thread();
        thread.leave_below(inside.stack);
        thread.inside.push(inside);
    }

    /// Whether the running thread is inside an allocator.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.running().is_some_and(|thread| !thread.inside.is_empty())
    }

    /// The call of an allocator that has just returned, if it is the outermost one. Functions that
    /// end in a jump to another return together with it.
    pub fn leave(&mut self, stack: u64) -> Option<Inside> {
        let thread = self.thread();
        let at = thread.inside.iter().position(|inside| inside.stack <= stack)?;
        let found = thread.inside[at];
        thread.inside.truncate(at);
        thread.inside.is_empty().then_some(found)
    }

    /// What an allocator's call has done, once it has returned.
    pub fn finish(&mut self, inside: &Inside, value: u64) {
        let result = match inside.allocator.role {
            Role::Allocate { size, count, zeroed } => {
                let size = inside.size(size, count);
                (value != 0)
                    .then(|| self.allocate(value, size, inside, if zeroed { size } else { 0 }))
            }
            Role::Resize { size, count } => self.resize(inside, inside.size(size, count), value),
            Role::AllocateTo { size } => {
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
        self.has_unplaced = true;
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

    /// Memory now holds what the kernel put there.
    pub fn kernel_wrote(&mut self, address: u64, length: u64) {
        if self.needs.pointers {
            self.memory.clear(address, length);
        }
        if self.watches_writes {
            self.unwritten.remove(address, length);
        }
        if self.needs.contents {
            self.contents.forget(address, length);
        }
    }

    /// Memory may hold what the kernel put there.
    pub fn mark_written(&mut self, address: u64, length: u64) {
        if self.watches_writes {
            self.unwritten.remove(address, length.min(1 << 30));
        }
    }

    /// A system call has returned: its result is the kernel's.
    pub fn system_call(&mut self, number: u64, arguments: &[u64; 6], answer: i64) {
        const MMAP: u64 = 9;
        const MUNMAP: u64 = 11;
        const MREMAP: u64 = 25;
        let failed = (-4095..0).contains(&answer);
        let thread = self.thread();
        thread.cells[RESULT] = Cell::default();
        thread.registers.set_general(RESULT as u8, 0, None);
        match number {
            MMAP if !failed => self.fresh(answer as u64, arguments[1]),
            MUNMAP if !failed => self.fresh(arguments[0], arguments[1]),
            MREMAP if !failed => {
                let (from, to) = (arguments[0], answer as u64);
                let (before, after) = (arguments[1], arguments[2]);
                if from != to {
                    self.memory.copy(to, from, before.min(after));
                    if self.watches_writes {
                        self.unwritten.copy(to, from, before.min(after));
                    }
                }
            }
            _ => {}
        }
    }

    /// Memory that is mapped anew or no more.
    fn fresh(&mut self, address: u64, length: u64) {
        self.kernel_wrote(address, length);
        self.blocks.forget(address, length);
    }

    /// A function that rules name was called or returns.
    pub fn remember(&mut self, kind: EventKind, function: &str, value: u64) {
        let arguments =
            vec![Value::Function(function.to_owned()), Value::Number(i128::from(value as i64))];
        let list = self.history.entry((kind, function.to_owned())).or_default();
        if list.len() >= MOST_CALLS {
            list.pop_front();
        }
        list.push_back(TraceEvent { time: self.time, arguments });
    }
}

/// What a repeated string move copied: to, from, bytes.
fn moved(accesses: &[Access]) -> Option<(u64, u64, u64)> {
    let lowest = |write| {
        let all = accesses.iter().filter(move |access| access.write == write);
        all.map(|access| access.address).min()
    };
    let size = accesses.iter().filter(|access| access.write).map(|access| u64::from(access.size));
    Some((lowest(true)?, lowest(false)?, size.sum()))
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
    let tagged = cell.tag.block();
    let address = arguments[0];
    // Where the first argument is a size, there is no block to look for.
    let is_pointer = matches!(allocator.role, Role::Free | Role::Resize { .. } | Role::Measure);
    let by_address =
        || machine.blocks.beginning_at(address).or_else(|| machine.blocks.containing(address));
    let block = tagged.or_else(|| if is_pointer { by_address() } else { None });
    let pointer = Pointer { address, block };
    let calls = machine.running().map(|thread| thread.calls.callers()).unwrap_or_default();
    // Without calls in the stream the return address is all there is.
    let callers = match calls.is_empty() {
        true => machine.keep_caller(back.wrapping_sub(1)),
        false => machine.keep_stack(calls),
    };
    Inside { allocator, function, back, stack, arguments, pointer, chain: cell.node, callers }
}
