//! The whole model, following a stream by itself: threads with their calls, the heap, the mappings.
//!
//! **Asks for** a plan with instructions and addresses of accesses (calls and returns are told by where
//! their return addresses stand), system calls, forks, and calls of the functions of
//! [`Process::function_names`]. Each may be missing: without addresses there are no call stacks, without
//! the functions no heap. **Consumes** events, or the records of a stream as a [`Consumer`]. **Answers**
//! what is so after the last of them.
//!
//! Time is counted in steps: instructions of all threads that have executed.

use super::blocks::Blocks;
use super::calls::CallStack;
use super::heap::{AllocatorCall, UnderWay, takes_block};
use super::mappings::Mappings;
use super::stacks::{DEEPEST, StackId, Stacks};
use super::threads::{Numbered, ThreadNumber, Threads};
use base::allocator::{Allocator, Allocators};
use events::shape::{KIND_CALL, KIND_RETURN};
use events::{Consumer, Decoder, Event};
use rustc_hash::FxHashMap;
use syscalls::number as n;

/// Stacks are further apart than this, frames of one stack are not.
const ONE_STACK: u64 = 64 << 20;

/// What is known of an active call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The call instruction; where the thread was, of a signal handler.
    pub pc: u64,
    /// When it was made.
    pub time: u64,
}

/// What is known of a thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its active calls.
    pub calls: CallStack<Call>,
    /// Calls of allocators under way.
    allocating: UnderWay<()>,
    /// A call or return that has executed, and whose access comes next.
    crossing: Option<(u8, u64)>,
}

impl Default for Thread {
    fn default() -> Self {
        let calls = CallStack::new(ONE_STACK);
        Self { calls, allocating: UnderWay::default(), crossing: None }
    }
}

impl Thread {
    /// The call instructions of its active calls, innermost first.
    pub fn callers(&self) -> impl Iterator<Item = u64> {
        self.calls.iter().map(|frame| frame.data.pc)
    }
}

/// A process.
#[derive(Default)]
pub struct Process {
    decoder: Decoder,
    /// Whether the stream was broken somewhere.
    pub broken: bool,
    /// Steps so far.
    pub time: u64,
    /// Its threads.
    pub threads: Threads<Thread>,
    /// Its blocks of heap memory; each release has the time of its call.
    pub blocks: Blocks<()>,
    /// Its mappings.
    pub mappings: Mappings,
    stacks: Stacks,
    allocators: Allocators,
    functions: FxHashMap<u64, Allocator>,
}

impl Process {
    /// A process with these allocators.
    #[must_use]
    pub fn new(allocators: Allocators) -> Self {
        Self { allocators, ..Self::default() }
    }

    /// The functions whose calls and returns tell of the heap.
    #[must_use]
    pub fn function_names(&self) -> Vec<String> {
        self.allocators.names()
    }

    /// The function of a name is at an address.
    pub fn add_function(&mut self, address: u64, name: &str) {
        if let Some(allocator) = self.allocators.named(name) {
            self.functions.entry(address).or_insert(allocator);
        }
    }

    /// A thread by its number.
    #[must_use]
    pub fn thread(&self, number: ThreadNumber) -> Option<&Numbered<Thread>> {
        self.threads.all().find(|known| known.number == number)
    }

    /// The calls of a stack that was kept, innermost first.
    #[must_use]
    pub fn stack(&self, id: StackId) -> &[u64] {
        self.stacks.get(id)
    }

    /// Something has happened.
    pub fn event(&mut self, event: &Event) {
        match *event {
            Event::Instruction { pc, kind, .. } => {
                self.time += 1;
                let crosses = matches!(kind, KIND_CALL | KIND_RETURN);
                self.threads.now_mut().crossing = crosses.then_some((kind, pc));
            }
            Event::Access { address, write, .. } => self.access(address, write),
            Event::Thread(kernel_id) => self.threads.switch(kernel_id, self.time),
            Event::Fork(None) => self.threads.fork(),
            Event::Handler { pc, frame, .. } => {
                let call = Call { pc, time: self.time };
                self.threads.now_mut().calls.handler(frame, call);
            }
            Event::Syscall { number, arguments, answer } => {
                self.system_call(number, &arguments, answer);
            }
            Event::Enter { function, back, stack, arguments } => {
                self.enter(function, back, stack, arguments);
            }
            Event::Return { function, stack, value } => self.leave(function, stack, value),
            _ => {}
        }
    }

    /// A call writes its return address, after it may have read where to go; a return reads it.
    fn access(&mut self, slot: u64, write: bool) {
        let time = self.time;
        let thread = self.threads.now_mut();
        match thread.crossing {
            Some((KIND_CALL, pc)) if write => thread.calls.call(slot, Call { pc, time }, |_| ()),
            Some((KIND_RETURN, _)) if !write => {
                thread.calls.returns(slot, |_| ());
            }
            _ => return,
        }
        thread.crossing = None;
    }

    fn system_call(&mut self, number: u64, arguments: &[u64; 6], answer: i64) {
        match number {
            n::rt_sigreturn => self.threads.now_mut().calls.handler_returns(),
            n::exit => self.threads.end(self.time),
            _ => self.mappings.system_call(number, arguments, answer),
        }
    }

    fn enter(&mut self, function: u64, back: u64, stack: u64, arguments: [u64; 6]) {
        let Some(allocator) = self.functions.get(&function).copied() else { return };
        let callers: Vec<u64> = self.threads.now().callers().take(DEEPEST).collect();
        // Without calls in the stream the return address is all there is.
        let callers = match callers.is_empty() {
            true => self.stacks.keep_caller(back.wrapping_sub(1)),
            false => self.stacks.keep(callers),
        };
        let pointer = Some(arguments[0]).filter(|at| takes_block(allocator.role) && *at != 0);
        let block = pointer.and_then(|address| self.blocks.at_pointer(address));
        let (guessed, data) = (true, ());
        let call = AllocatorCall {
            allocator,
            function,
            back,
            stack,
            arguments,
            block,
            guessed,
            callers,
            data,
        };
        self.threads.now_mut().allocating.enter(call);
    }

    fn leave(&mut self, function: u64, stack: u64, value: u64) {
        if !self.functions.contains_key(&function) {
            return;
        }
        if let Some(call) = self.threads.now_mut().allocating.leave(stack) {
            self.blocks.finish(&call, value, self.time, ((), false));
        }
    }
}

impl Consumer for Process {
    fn records(&mut self, bytes: &[u8]) {
        let mut decoder = std::mem::take(&mut self.decoder);
        self.broken |= decoder.events(bytes, |event| self.event(&event)).is_err();
        self.decoder = decoder;
    }
}

#[cfg(test)]
mod tests;
