//! From the stream to records, with what must be known of the threads meanwhile.

use super::format::{
    ACCESS, FIRST_EXIT, HANDLER, READ, RESUMED, SYSCALL, THREAD, UNWOUND, Unwinding, WROTE, address,
};
use super::non_local_jump::{NonLocalJump, Ran};
use super::windows::Closed;
use crate::dependence::block::Blocks;
use crate::dependence::calls::{Calls, Left, Maker};
use crate::dependence::system_calls;
use crate::semantics::Form;
use base::Tick;
use events::decode::{Bases, Record};
use rustc_hash::FxHashMap;

/// Bytes of a chunk, about.
const CHUNK: usize = 1 << 20;

/// What has come out about a jump that replaced the stack pointer.
#[derive(Clone, Copy)]
pub struct Landed {
    /// The exit that it is the end of.
    pub exit: u32,
    /// Where it led; 0 if that was not seen.
    pub target: u64,
    /// If it left frames: how.
    pub unwinding: Option<Unwinding>,
}

/// What is known while the stream comes in. A copy of it, made where a window begins, is all that
/// is needed to write that window again.
#[derive(Clone, Default)]
pub struct Writer {
    open: Vec<u8>,
    /// Instructions so far.
    pub executed: u64,
    open_before: u64,
    /// Ticks so far.
    pub tick: Tick,
    open_tick: Tick,
    thread: u32,
    bases: Bases,
    /// Accesses of the next exit's instruction.
    explicit: Vec<u8>,
    /// What the next system call wrote and read, if the stream tells.
    buffers: Option<Buffers>,
    threads: FxHashMap<u32, ThreadWriter>,
    current: ThreadWriter,
    /// Jumps of which it has come out where they landed.
    landed: Vec<Landed>,
}

/// Memory that a system call was given: address, bytes.
#[derive(Clone, Default)]
struct Buffers {
    written: Vec<(u64, u64)>,
    read: Vec<(u64, u64)>,
}

/// What is known of one thread.
#[derive(Clone, Default)]
struct ThreadWriter {
    calls: Calls,
    /// The exit by which it left its last superblock.
    last: Option<u32>,
    /// A jump that replaced the stack pointer and whose frame is looked for.
    jump: Option<NonLocalJump>,
}

impl Writer {
    /// Nothing has been written yet, and the run begins at this tick.
    pub fn begin_at(&mut self, tick: Tick) {
        (self.tick, self.open_tick) = (tick, tick);
    }

    /// Whether a chunk is full.
    pub fn is_full(&self) -> bool {
        self.open.len() >= CHUNK && self.current.jump.is_none()
    }

    /// Takes what has come out about a jump.
    #[inline]
    pub fn landed(&mut self) -> Option<Landed> {
        self.landed.pop()
    }

    /// Ends a chunk; none if nothing is in it.
    pub fn close(&mut self, blocks: &Blocks) -> Option<Closed> {
        if self.open.is_empty() {
            return None;
        }
        self.land_all(blocks);
        let bytes = std::mem::replace(&mut self.open, Vec::with_capacity(CHUNK + 4096));
        let (before, executed) = (self.open_before, self.executed - self.open_before);
        let (tick, ticks) = (self.open_tick, self.tick.0 - self.open_tick.0);
        (self.open_before, self.open_tick) = (self.executed, self.tick);
        self.thread_record();
        Some(Closed { bytes: bytes.into(), before, executed, tick, ticks })
    }

    /// Everything but the execution of a superblock.
    pub fn other(&mut self, record: Record<'_, '_>) {
        match record {
            Record::Thread(thread, bases) => self.switch(thread, bases),
            Record::Syscall(number, arguments, answer) => self.syscall(number, arguments, answer),
            Record::Accesses(list) => {
                self.explicit.clear();
                let mut rest = list;
                while let Some(write) = rest.u8() {
                    let (Some(address), Some(bytes)) = (rest.u64(), rest.u32()) else { break };
                    self.explicit.push(write & 1);
                    self.explicit.extend(address.to_le_bytes());
                    self.explicit.extend(bytes.to_le_bytes());
                }
            }
            // What was not completed defines nothing that anyone could rely on.
            Record::Cut(..) => self.explicit.clear(),
            Record::Buffers(buffers) => {
                // Long lists come in several records.
                let all = self.buffers.get_or_insert_default();
                let touched = buffers.flatten().filter(|buffer| buffer.absent.is_none());
                for buffer in touched.filter(|buffer| buffer.length > 0) {
                    let list = if buffer.write { &mut all.written } else { &mut all.read };
                    list.push((buffer.address, buffer.length));
                }
            }
            Record::Path(_) | Record::Single(_) | Record::Probe(..) => {}
        }
    }

    fn switch(&mut self, thread: u32, bases: Bases) {
        if thread != self.thread {
            let next = self.threads.remove(&thread).unwrap_or_default();
            let last = std::mem::replace(&mut self.current, next);
            self.threads.insert(self.thread, last);
        }
        (self.thread, self.bases) = (thread, bases);
        self.thread_record();
    }

    fn syscall(&mut self, number: u64, arguments: [u64; 6], answer: i64) {
        let buffers = self.buffers.take();
        let read = buffers.as_ref().map(|buffers| &buffers.read[..]).unwrap_or_default();
        self.list(READ, read);
        self.word(SYSCALL);
        for value in [number].iter().chain(&arguments) {
            self.open.extend(value.to_le_bytes());
        }
        self.open.extend(answer.to_le_bytes());
        let written = match buffers {
            Some(Buffers { mut written, .. }) => {
                let mapped = syscalls::mapped(number, &arguments, answer);
                written.extend(mapped.map(|range| (range.address, range.length)));
                written
            }
            None => system_calls::written(number, &arguments, answer),
        };
        self.list(WROTE, &written);
        if number == syscalls::number::rt_sigreturn {
            self.resume();
        }
    }

    /// Ranges of memory, if there are any.
    fn list(&mut self, kind: u32, ranges: &[(u64, u64)]) {
        if ranges.is_empty() {
            return;
        }
        self.word(kind);
        self.word(ranges.len() as u32);
        for (address, bytes) in ranges {
            self.open.extend(address.to_le_bytes());
            self.open.extend(bytes.to_le_bytes());
        }
    }

    /// Control of the thread arrives at an address: the exit whose indirect jump or call, or
    /// return, has sent it there.
    pub fn arrive(&mut self, blocks: &Blocks, pc: u64) -> Option<u32> {
        let last = self.current.last?;
        let exit = &blocks.exits[last as usize];
        if exit.next == pc {
            return None;
        }
        if exit.lands.is_some()
            && let Some(jump) = &mut self.current.jump
        {
            jump.target = pc;
            self.land_if_over(blocks);
            return None;
        }
        if exit.next == 0 {
            return Some(last);
        }
        if blocks.last_form(exit) == Some(Form::Syscall) && self.current.calls.in_handler() {
            self.resume();
        }
        None
    }

    /// A signal handler is entered, at whose beginning the stack pointer is `frame`. The thread has
    /// arrived where it was before, with this stack pointer.
    pub fn handler(&mut self, blocks: &Blocks, stack: u64, frame: u64) {
        self.land(blocks, Some(stack));
        self.current.calls.handler(frame);
        self.current.last = None;
        self.word(HANDLER);
    }

    /// A superblock was left by an exit.
    pub fn path(&mut self, blocks: &Blocks, id: u32, payload: &[u8]) {
        if !self.explicit.is_empty() {
            let list = std::mem::take(&mut self.explicit);
            self.word(ACCESS);
            self.word((list.len() / 13) as u32);
            self.open.extend(&list);
        }
        let exit = &blocks.exits[id as usize];
        let ran = Ran { blocks, exit, payload, bases: self.bases };
        if let Some(jump) = &mut self.current.jump {
            jump.follow(ran);
            self.land_if_over(blocks);
        }
        if exit.crossings > 0 {
            self.cross(ran);
        }
        self.word(id + FIRST_EXIT);
        self.open.extend(payload);
        self.executed += u64::from(exit.executed);
        self.tick.0 += u64::from(exit.ticks);
        self.current.last = Some(id);
        if let Some(replaced) = exit.lands {
            self.land_anyway(blocks);
            self.current.jump = Some(NonLocalJump::new(self.open.len(), id, ran, replaced));
        }
    }

    /// Follows the calls and returns of a superblock.
    fn cross(&mut self, ran: Ran<'_>) {
        let block = &ran.blocks.blocks[ran.exit.block as usize];
        for crossing in &block.crossings[..ran.exit.crossings.into()] {
            let access = &block.accesses[usize::from(crossing.access)];
            let Some(slot) = address(access, ran.payload, ran.bases) else { continue };
            let calls = &mut self.current.calls;
            let left = if crossing.call {
                calls.call(slot, block.instructions[usize::from(crossing.index)])
            } else {
                calls.returns(slot)
            };
            if !left.slots.is_empty() {
                self.unwound(self.open.len(), &left, Unwinding::Unnoticed);
            }
        }
    }

    fn land_if_over(&mut self, blocks: &Blocks) {
        if self.current.jump.as_ref().is_some_and(NonLocalJump::is_over) {
            self.land_anyway(blocks);
        }
    }

    /// With as much as is known.
    fn land_anyway(&mut self, blocks: &Blocks) {
        let stack = self.current.jump.as_ref().and_then(NonLocalJump::stack);
        self.land(blocks, stack);
    }

    /// The stack pointer where a jump landed is known, or will not be.
    fn land(&mut self, blocks: &Blocks, stack: Option<u64>) {
        let Some(NonLocalJump { at, exit, target, .. }) = self.current.jump.take() else { return };
        if target == 0 {
            // It will arrive, but not by what is known of this exit.
            self.current.last = None;
        }
        let left = stack.map(|stack| self.current.calls.land(stack));
        let unwinding = left.map_or(Some(Unwinding::Unnoticed), |left| {
            let returned = |call: u32| blocks.statics[call as usize].next() == target;
            let by = match left.outermost {
                Some(Maker::Kernel) => Unwinding::Signal,
                Some(Maker::Call(call)) if target != 0 && !returned(call) => Unwinding::Call(call),
                _ => Unwinding::Unnoticed,
            };
            let any = !left.slots.is_empty();
            if any {
                self.unwound(at, &left, by);
            }
            any.then_some(by)
        });
        self.landed.push(Landed { exit, target, unwinding });
    }

    /// The same for all threads: where their records are will not be known any more.
    fn land_all(&mut self, blocks: &Blocks) {
        self.land_anyway(blocks);
        let waiting = self.threads.iter().filter(|(_, thread)| thread.jump.is_some());
        let mut waiting: Vec<u32> = waiting.map(|(number, _)| *number).collect();
        waiting.sort_unstable();
        for number in waiting {
            let Some(thread) = self.threads.remove(&number) else { continue };
            let running = std::mem::replace(&mut self.current, thread);
            self.land_anyway(blocks);
            let thread = std::mem::replace(&mut self.current, running);
            self.threads.insert(number, thread);
        }
    }

    fn word(&mut self, word: u32) {
        self.open.extend(word.to_le_bytes());
    }

    fn thread_record(&mut self) {
        self.word(THREAD);
        self.word(self.thread);
        let (fs, gs) = (self.bases.fs, self.bases.gs);
        self.open.extend(fs.to_le_bytes());
        self.open.extend(gs.to_le_bytes());
    }

    /// Tells at this place of the open chunk that frames were left.
    fn unwound(&mut self, at: usize, left: &Left, by: Unwinding) {
        let words = [UNWOUND, left.slots.len() as u32, by.number()];
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        let slots = left.slots.iter().flat_map(|slot| slot.to_le_bytes());
        let before = self.open.len();
        self.open.splice(at..at, words.chain(slots));
        let added = self.open.len() - before;
        let non_local_jumps = self.threads.values_mut().filter_map(|thread| thread.jump.as_mut());
        non_local_jumps.filter(|jump| jump.at >= at).for_each(|jump| jump.at += added);
    }

    fn resume(&mut self) {
        self.current.calls.handler_returns();
        (self.current.last, self.current.jump) = (None, None);
        self.word(RESUMED);
    }
}
