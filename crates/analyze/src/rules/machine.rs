//! The abstract machine of a real execution, kept up to date from the events of one process.
//!
//! It stands on the model of the process ([`crate::model`]): threads, calls, blocks, mappings, variables.
//! What it adds is which values go where:
//!
//! - [`locals`]: blocks of variables in frames; [`dynamic`]: room made there while a function runs;
//!   [`thread_locals`]: variables of threads;
//! - [`cells`]: the block that each pointer in a register or in memory was made from; [`tags`]: what
//!   becomes of that in arithmetic, and where one of two is taken;
//! - [`chains`]: by which copies a value came;
//! - [`unwritten`], [`registers`]: bits that nobody wrote; [`bitwise`]: what becomes of them;
//! - [`calls`]: what is kept of an active call; `library`: calls that are judged by contracts; `frames`: what calls do to the stack; `handlers`:
//!   what signals do to a thread; `heap`: what allocators do to values;
//! - [`contents`]: what stands in memory, where rules ask; [`descriptors`]: which are open;
//! - `unmapped`: memory that was mapped once;
//! - [`numbers`]: the chains of values of four bytes;
//! - [`pages`]: tables by address;
//! - [`code`]: what an instruction does to all this, compiled once; [`alignment`]: where two are one;
//! - [`view`]: the machine as rules see it;
//! - `window`: what is known where only a part of a run is followed.
//!
//! It knows no rules. Whoever does asks it *before* it is told that something has happened, so that
//! a rule fires before the error.

pub mod alignment;
pub mod bitwise;
pub mod calls;
pub mod cells;
pub mod chains;
pub mod code;
pub mod contents;
pub mod descriptors;
pub mod dynamic;
mod frames;
mod handlers;
mod heap;
mod library;
pub mod locals;
pub mod numbers;
mod pages;
pub mod registers;
pub mod tags;
mod thread;
pub mod thread_locals;
mod unmapped;
pub mod unwritten;
pub mod view;
mod window;

use super::model::EventKind;
use super::needs::Needs;
use super::state::{BlockId, NULL_PAGE, Pointer, TraceEvent, Value};
pub use crate::model::mappings::NEAR_STACK;
use crate::model::mappings::{Change, Mappings};
use crate::model::stacks::{StackId, Stacks};
use crate::model::threads::Threads;
use crate::model::variables::Variables;
use base::{Address, Position, Tick};
use cells::{Cell, Memory};
use chains::{Chains, Node, Stamp};
use code::{Action, Code, FRAME_POINTER, Place, STACK_POINTER};
use contents::Contents;
use descriptors::Descriptors;
use dynamic::Probe;
pub use heap::{Blocks, Freed, Given, Inside, about_to};
use locals::{Locals, UNKNOWN};
use numbers::Numbers;
pub use registers::Origin;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Range;
use syscalls::number as n;
use tags::{Arithmetic, Tag};
pub use thread::Thread;
use thread_locals::ThreadLocals;
use unmapped::Unmapped;
use unwritten::Unwritten;
use window::Before;
pub use window::{Start, Words};

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
/// The cell of rax.
pub const RESULT: usize = 0;
/// rdi, rsi, rdx, rcx, r8, r9.
pub const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];

/// The position of a process whose instructions are followed: ticks are counted path by path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// Ticks before the path that is followed; nothing if nobody said where the run begins.
    pub tick: Option<Tick>,
    /// Ticks in the path before the instruction that is looked at, and its address.
    pub here: (u16, u64),
}

impl Clock {
    /// The position.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        let (ticks, pc) = self.here;
        let tick = Tick(self.tick?.0 + u64::from(ticks));
        Some(Position { tick, pc: Address(pc) })
    }
}

/// The machine.
#[derive(Clone, Default)]
pub struct Machine {
    /// What has to be kept.
    pub needs: Needs,
    /// Whether the bytes that nobody wrote have to be kept.
    pub watches_writes: bool,
    /// Instructions executed so far.
    pub time: u64,
    /// Where exactly it is.
    pub clock: Clock,
    /// Blocks.
    pub blocks: Blocks,
    /// Chains.
    pub chains: Chains,
    /// Descriptors.
    pub descriptors: Descriptors,
    /// Bits of memory that nobody wrote.
    pub unwritten: Unwritten,
    /// Code that uses what nobody wrote on purpose: what it makes of that counts as written.
    pub excused: Vec<Range<u64>>,
    /// Variables with static storage.
    pub variables: Variables,
    /// Variables in frames.
    pub locals: Locals,
    /// Variables of threads.
    pub thread_locals: ThreadLocals,
    /// Where registers are told of.
    probes: FxHashMap<u64, Probe>,
    /// What stands in memory, where rules ask for that.
    pub contents: Contents,
    memory: Memory,
    mappings: Mappings,
    unmapped: Unmapped,
    numbers: Numbers,
    arithmetic: Arithmetic,
    threads: Threads<Thread>,
    stacks: Stacks,
    /// Calls and returns of the functions that rules name.
    history: FxHashMap<(EventKind, String), VecDeque<TraceEvent>>,
    /// Blocks that a child had when it was forked: their numbers end here.
    pub inherited: u32,
    /// When it was forked, if it was.
    pub forked: Option<u64>,
    /// When heap blocks were allocated, where ticks are counted.
    allocated_at: FxHashMap<BlockId, Stamp>,
    /// What is older than the window, if only one is followed.
    before: Option<Before>,
    pending: Vec<(Place, Cell)>,
}

impl Machine {
    /// A machine that keeps what is needed.
    #[must_use]
    pub fn new(needs: Needs, watches_writes: bool) -> Self {
        Self { needs, watches_writes, ..Self::default() }
    }

    /// The thread that runs.
    pub fn thread(&mut self) -> &mut Thread {
        self.threads.now_mut()
    }

    /// The thread that runs.
    #[must_use]
    pub fn running(&self) -> &Thread {
        self.threads.now()
    }

    /// The thread that runs, as the kernel numbers it; 0 if the stream has not said.
    #[must_use]
    pub fn thread_id(&self) -> u32 {
        self.threads.running().kernel_id.unwrap_or(0)
    }

    /// Threads that the stream has named: the kernel's ids, and their numbers.
    pub fn numbered_threads(&self) -> impl Iterator<Item = (u32, u32)> {
        self.threads.all().filter_map(|known| Some((known.kernel_id?, known.number)))
    }

    /// All threads.
    pub fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.all().map(|known| &known.state)
    }

    /// From here on this thread runs.
    pub fn switch(&mut self, thread: u32) {
        self.threads.switch(thread, self.time);
    }

    /// From here on this is a child that was forked: of all threads only the one that runs goes on.
    pub fn fork(&mut self) {
        self.threads.fork();
        self.inherited = self.blocks.count() as u32;
        self.forked = Some(self.time);
    }

    /// What was mapped by system calls, by address.
    pub fn mapped(&self) -> impl Iterator<Item = Range<u64>> {
        self.mappings.iter()
    }

    /// What memory carries.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The calls of a kept stack, innermost first.
    #[must_use]
    pub fn stack(&self, id: StackId) -> &[u64] {
        self.stacks.get(id)
    }

    /// Keeps a stack.
    pub fn keep_stack(&mut self, stack: Vec<u64>) -> StackId {
        self.stacks.keep(stack)
    }

    /// What a pointer carries that is made from a constant, by code of a function.
    fn constant(&mut self, address: u64, function: u32) -> Tag {
        // Most constants are numbers.
        if address < NULL_PAGE {
            return Tag::default();
        }
        let Self { variables, blocks, locals, .. } = self;
        let plain = function != UNKNOWN && locals.is_plain(function);
        variables.block_at(address, plain, blocks).map(Tag::of).unwrap_or_default()
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
            let made = (code.function, code.pc);
            let cell = self.frame_address(base, how.displacement, made, true);
            return (Pointer { address, block: cell.tag.block() }, cell.node);
        }
        if how.own && (how.indexed || how.base.is_some()) {
            return (Pointer { address, block: self.own_element(how) }, Node::default());
        }
        if how.base.is_none() && how.indexed {
            // An element of a variable whose address stands in the instruction.
            let tag = self.constant(how.displacement as u64, code.function);
            return (Pointer { address, block: tag.block() }, Node::default());
        }
        let Self { threads, arithmetic, blocks, .. } = self;
        let cells = &threads.now().cells;
        let cell = |index: Option<u8>| index.map(|index| cells[index as usize]).unwrap_or_default();
        let (base, index) = (cell(how.base), cell(how.index));
        let tag = arithmetic.sum(base.tag, index.tag);
        let node = if base.tag.is_none() && !index.tag.is_none() { index.node } else { base.node };
        (Pointer { address, block: arithmetic.resolve(tag, address, blocks) }, node)
    }

    /// The block of a pointer with this tag and address.
    fn resolve(&self, tag: Tag, address: u64) -> Option<BlockId> {
        self.arithmetic.resolve(tag, address, &self.blocks)
    }

    /// Every pointer of the program: where it stands, 0 in a register, and a block that it may point
    /// into.
    pub fn pointers(&self) -> impl Iterator<Item = (u64, BlockId)> + '_ {
        let cells = self.threads().flat_map(|thread| &thread.cells);
        let tags = cells.map(|cell| (0, cell.tag)).chain(self.memory.pointers());
        let blocks = tags.flat_map(|(place, tag)| {
            self.arithmetic.candidates(tag).map(move |block| (place, block))
        });
        blocks.chain(self.arithmetic.forgotten().iter().map(|block| (0, *block)))
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

    /// Whether code uses what nobody wrote on purpose.
    #[must_use]
    pub fn is_excused(&self, pc: u64) -> bool {
        self.excused.iter().any(|code| code.contains(&pc))
    }

    fn follow_cells(&mut self, code: &Code, accesses: &[Access]) {
        if code.actions.is_empty() && accesses.is_empty() {
            return;
        }
        if self.needs.numbers {
            for access in accesses.iter().filter(|access| access.write) {
                self.numbers.clear(access.address, u64::from(access.size));
            }
        }
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
        // Accesses that are not what the instruction says have no numbers.
        let accesses = if matched { accesses } else { &[] };
        if let [action] = code.actions.as_slice() {
            let (place, cell) = self.result(action, code, accesses);
            self.put(place, cell, code, accesses);
            return;
        }
        // All sources are read before anything is written.
        let mut pending = std::mem::take(&mut self.pending);
        for action in &code.actions {
            pending.push(self.result(action, code, accesses));
        }
        for (place, cell) in pending.drain(..) {
            self.put(place, cell, code, accesses);
        }
        self.pending = pending;
    }

    fn put(&mut self, place: Place, cell: Cell, code: &Code, accesses: &[Access]) {
        match place {
            Place::Cell(STACK_POINTER) => {}
            Place::Cell(index) => self.thread().cells[index as usize] = cell,
            Place::Memory(slot, offset) => {
                let Some(address) = address_of(accesses, slot, offset) else { return };
                let node = match code.saves {
                    true => cell.node,
                    false => self.stored(code, cell.node),
                };
                self.memory.write(address, Cell { node, ..cell }, &mut self.arithmetic);
            }
            Place::Half(slot, offset) if self.needs.numbers => {
                let Some(address) = address_of(accesses, slot, offset) else { return };
                let node = self.stored(code, cell.node);
                self.numbers.store(address, node);
            }
            _ => {}
        }
    }

    /// The node of a value that an instruction stores now.
    fn stored(&mut self, code: &Code, from: Node) -> Node {
        self.chains.now = self.clock.position().map(|position| (position.tick, self.thread_id()));
        self.chains.stored(code.place, from)
    }

    /// When it is, where ticks are counted.
    #[must_use]
    pub fn now(&self) -> Option<Stamp> {
        let thread = self.thread_id();
        self.clock.position().map(|position| Stamp { position, thread })
    }

    /// When a heap block was allocated, where ticks are counted.
    #[must_use]
    pub fn allocated_at(&self, block: BlockId) -> Option<Stamp> {
        self.allocated_at.get(&block).copied()
    }

    fn result(&mut self, action: &Action, code: &Code, accesses: &[Access]) -> (Place, Cell) {
        let made = Chains::made(code.place);
        match *action {
            Action::Copy(to, from) => (to, self.read(from, code, accesses)),
            Action::Number(to, from) => {
                let node = match self.needs.numbers {
                    true => self.read(from, code, accesses).node,
                    false => made,
                };
                (to, Cell { tag: Tag::default(), node })
            }
            Action::Make(to) => (to, Cell { tag: Tag::default(), node: made }),
            Action::Address(to, address) => {
                let tag = self.constant(address, code.function);
                (to, Cell { tag, node: made })
            }
            Action::ThreadPointer(to) => {
                let tag = self.running().pointer.map(|(_, block)| Tag::of(block));
                (to, Cell { tag: tag.unwrap_or_default(), node: made })
            }
            Action::Shift(to, from, by) => {
                let from = self.read(from, code, accesses);
                let tag = self.arithmetic.sum(from.tag, Tag::default());
                (to, Cell { tag: self.own_variable(tag, by), node: made })
            }
            Action::Sum(to, left, right) => {
                let (left, right) =
                    (self.read(left, code, accesses), self.read(right, code, accesses));
                (to, Cell { tag: self.arithmetic.sum(left.tag, right.tag), node: made })
            }
            Action::Choice(to, left, right) => {
                let (left, right) =
                    (self.read(left, code, accesses), self.read(right, code, accesses));
                let node = if left.node == right.node { left.node } else { made };
                (to, Cell { tag: self.arithmetic.choice(left.tag, right.tag), node })
            }
            Action::Compare(left, right) => {
                let (left, right) =
                    (self.read(left, code, accesses), self.read(right, code, accesses));
                self.arithmetic.compare(left.tag, right.tag);
                (Place::Nothing, Cell::default())
            }
            Action::Difference(to, left, right) => {
                let (left, right) =
                    (self.read(left, code, accesses), self.read(right, code, accesses));
                (to, Cell { tag: self.arithmetic.difference(left.tag, right.tag), node: made })
            }
        }
    }

    fn read(&mut self, place: Place, code: &Code, accesses: &[Access]) -> Cell {
        match place {
            Place::Cell(index) => self.thread().cells[index as usize],
            Place::Memory(slot, offset) => {
                let Some(address) = address_of(accesses, slot, offset) else {
                    return Cell::default();
                };
                let cell = self.memory.read(address, &mut self.arithmetic);
                self.known(address, cell)
            }
            Place::Half(slot, offset) => {
                let node = address_of(accesses, slot, offset).map(|at| self.numbers.load(at));
                Cell { tag: Tag::default(), node: node.unwrap_or_default() }
            }
            Place::Stack(register, displacement) => {
                let made = (code.function, code.pc);
                self.frame_address(register, i64::from(displacement), made, code.adds_index)
            }
            Place::Lowest => self.lowest_variable((code.function, code.pc)),
            Place::Nothing => Cell::default(),
        }
    }

    fn follow_writes(&mut self, code: &Code, accesses: &[Access]) {
        let excused = self.is_excused(code.pc);
        let Self { threads, unwritten, .. } = self;
        let thread = threads.now_mut();
        if excused {
            return thread.make_anew(code, accesses, unwritten);
        }
        if code.moves {
            if let Some((to, from, size)) = moved(accesses) {
                unwritten.copy(to, from, size);
            }
            return;
        }
        thread.follow(code, accesses, unwritten);
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
        if number == n::rt_sigreturn {
            return self.handled();
        }
        let thread = self.thread();
        thread.cells[RESULT] = Cell::default();
        thread.registers.set_general(RESULT as u8, 0, None);
        let Some(change) = Change::of(number, arguments, answer) else { return };
        let stack = self.running().calls.callers();
        match change {
            Change::Mapped(address, length) => {
                self.fresh(address, length);
                self.unmapped.cut(address, length);
            }
            Change::Unmapped(address, length) => {
                self.fresh(address, length);
                self.unmap(address, length, stack);
            }
            Change::Moved((from, before), (to, after)) if from != to => {
                self.memory.copy(to, from, before.min(after));
                if self.watches_writes {
                    self.unwritten.copy(to, from, before.min(after));
                }
                self.unmap(from, before, stack);
                self.unmapped.cut(to, after);
            }
            Change::Moved(..) => {}
        }
        self.mappings.apply(change);
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

/// Where a part of a memory operand is.
fn address_of(accesses: &[Access], slot: u8, offset: u16) -> Option<u64> {
    Some(accesses.get(slot as usize)?.address.wrapping_add(u64::from(offset)))
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
