//! Follows calls, returns and what is stored over the memory that they depend on.

use super::{Hijack, Overwritten, Write};
use crate::model::calls::CallStack;
use crate::model::threads::Threads;
use crate::rules::machine::chains::Stamp;
use crate::semantics::{Form, Meaning};
use base::{Address, Position, Tick};
use events::decode::Record;
use events::shape::{Instruction, KIND_BRANCH, KIND_CALL, KIND_PLAIN, KIND_RETURN};
use events::{Consumer, Decoder, Event};
use iced_x86::{DecoderOptions, InstructionInfoFactory, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::Range;
use syscalls::number as n;

/// Stacks are further apart than this, frames of one stack are not.
const ONE_STACK: u64 = 64 << 20;
/// Frames that a store is held against, from the innermost.
const NEAREST: usize = 64;
/// Calls that are kept of a stack.
const DEEPEST: usize = 24;
/// Instructions in which a call that is only made to be redirected comes back.
const AT_ONCE: u64 = 3;
/// Instructions of a function within which it saves the frame pointer.
const PROLOGUE: u64 = 3;
/// Pointers that were read lately.
const LATELY: usize = 256;
/// Instructions of a jump out of calls, from its first to the one that has read its buffer.
const LONGEST_JUMP: u64 = 2000;
/// Bytes below its return address that `setjmp` may push to.
const OWN_FRAME: u64 = 256;
/// Findings that are kept.
const MOST: usize = 16;

/// How far the C library turns pointers to code that it keeps.
const MANGLED_BY: u32 = 17;
const POINTER: u64 = 8;

/// What is known of an active call.
#[derive(Clone, Debug, Default)]
struct Call {
    pc: u64,
    back: u64,
    time: u64,
    /// What the function has saved next to its return address, as its first thing.
    saved: Option<u64>,
    /// What was stored over each.
    over_return: Option<Write>,
    over_saved: Option<Write>,
}

#[derive(Clone, Debug)]
struct Thread {
    calls: CallStack<Call>,
    /// The instruction that has executed, and its kind.
    pc: u64,
    kind: u8,
    /// The access whose value comes next.
    access: Option<(u64, u32, bool)>,
    /// The frame pointer is what a store left behind, for the calls up to this depth.
    smashed: Option<(usize, u64, Write)>,
    /// When a jump out of calls has begun.
    jumping: Option<u64>,
    /// The depth at which `setjmp` was called.
    setting: Option<usize>,
}

impl Default for Thread {
    fn default() -> Self {
        Self {
            calls: CallStack::new(ONE_STACK),
            pc: 0,
            kind: 0,
            access: None,
            smashed: None,
            jumping: None,
            setting: None,
        }
    }
}

impl Thread {
    fn callers(&self) -> Vec<u64> {
        self.calls.iter().map(|frame| frame.data.pc).take(DEEPEST).collect()
    }

    fn write(&self, address: u64, size: u64, value: Option<u64>, stamp: Stamp) -> Write {
        let by_kernel = value.is_none();
        Write { pc: self.pc, callers: self.callers(), address, size, value, by_kernel, stamp }
    }
}

/// The functions whose buffers are followed, by address.
#[derive(Clone, Debug, Default)]
pub struct Jumps {
    /// `setjmp` and its like.
    pub set: Vec<u64>,
    /// `longjmp` and its like.
    pub jump: Vec<u64>,
}

/// Follows one process.
#[derive(Default)]
pub struct Transfers {
    decoder: Decoder,
    /// The same stream once more, for what only shapes tell.
    shapes: Decoder,
    /// Superblocks that have been looked at, by their first instruction and how many they have.
    known: FxHashSet<(u64, usize)>,
    /// How long calls are.
    lengths: FxHashMap<u64, u8>,
    /// Instructions that name their place by the stack pointer: what they store over a return address is
    /// meant for it.
    deliberate: FxHashSet<u64>,
    /// Whether the stream was broken somewhere.
    pub broken: bool,
    /// What was found.
    pub found: Vec<Hijack>,
    /// The last write to the memory that is watched.
    pub written: Option<Write>,
    watched: Range<u64>,
    jumps: Jumps,
    threads: Threads<Thread>,
    time: u64,
    /// Instructions that may be ticks, ticks so far, and whether the last instruction was one.
    forms: FxHashMap<u64, Form>,
    tick: u64,
    ticks: bool,
    /// Words that `setjmp` has stored, and what was stored over them.
    buffers: FxHashMap<u64, Option<Write>>,
    /// Pointers read lately: where, what, by which instruction.
    read: VecDeque<(u64, u64, u64)>,
}

impl Transfers {
    /// Follows jumps through the buffers of these functions.
    #[must_use]
    pub fn new(jumps: Jumps) -> Self {
        Self { jumps, ..Self::default() }
    }

    /// Follows only who writes to a range.
    #[must_use]
    pub fn watching(watched: Range<u64>) -> Self {
        Self { watched, ..Self::default() }
    }

    /// Where a pointer of this value was read last.
    #[must_use]
    pub fn source_of(&self, value: u64) -> Option<u64> {
        let plain = self.read.iter().rev().find(|(_, read, _)| *read == value);
        plain.or_else(|| self.mangled(value)).map(|(at, ..)| *at)
    }

    /// The last read of what the C library keeps in place of a pointer to code: mixed with a number that is read,
    /// too, and turned.
    fn mangled(&self, value: u64) -> Option<&(u64, u64, u64)> {
        let is_read = |number: u64| self.read.iter().any(|(_, read, _)| *read == number);
        self.read.iter().rev().find(|(_, read, _)| is_read(read.rotate_right(MANGLED_BY) ^ value))
    }

    /// What a return that faults would have read: the return address that stands there was overwritten.
    #[must_use]
    pub fn return_at(&self, slot: u64, target: u64) -> Option<Hijack> {
        let thread = self.threads.now();
        let frame = thread.calls.iter().find(|frame| frame.slot == slot && !frame.handler)?;
        let write = frame.data.over_return.clone()?;
        let what = Overwritten::Return { expected: frame.data.back, target };
        (frame.data.back != target).then(|| astray(thread, what, slot, write))
    }

    /// The frame pointer that the running function goes on with was overwritten.
    #[must_use]
    pub fn frame_pointer(&self) -> Option<Hijack> {
        let thread = self.threads.now();
        let (depth, place, write) = thread.smashed.clone()?;
        (thread.calls.depth() <= depth)
            .then(|| astray(thread, Overwritten::FramePointer, place, write))
    }

    /// The instruction that executed last, and the calls that it was made in.
    #[must_use]
    pub fn last(&self) -> (u64, Vec<u64>) {
        let thread = self.threads.now();
        (thread.pc, thread.callers())
    }

    /// Something has happened.
    pub fn event(&mut self, event: &Event) {
        match *event {
            Event::Instruction { pc, kind, taken } => {
                self.instruction(pc, kind);
                let form = self.forms.get(&pc).filter(|_| kind != KIND_PLAIN);
                self.ticks =
                    form.is_some_and(|form| form.is_tick(pc, taken || kind != KIND_BRANCH));
            }
            Event::Interrupted { pc } => self.instruction(pc, KIND_PLAIN),
            Event::Access { address, size, write } => {
                self.threads.now_mut().access = Some((address, size, write));
                if write && self.threads.now().kind == KIND_CALL {
                    self.called(address);
                } else if write {
                    // What a wide store wrote may not be told.
                    self.wrote(address, u64::from(size), Some(0));
                }
            }
            Event::Value(values) => self.value(values[0]),
            Event::Kernel { address, length, write: true } => self.wrote(address, length, None),
            Event::Thread(kernel_id) => self.threads.switch(kernel_id, self.time),
            Event::Fork(None) => self.threads.fork(),
            Event::Handler { pc, frame, .. } => {
                let call = Call { pc, time: self.time, ..Call::default() };
                self.threads.now_mut().calls.handler(frame, call);
            }
            Event::Syscall { number: n::rt_sigreturn, .. } => {
                self.threads.now_mut().calls.handler_returns();
            }
            Event::Syscall { number: n::exit, .. } => self.threads.end(self.time),
            _ => {}
        }
    }

    fn instruction(&mut self, pc: u64, kind: u8) {
        self.time += 1;
        self.tick += u64::from(std::mem::take(&mut self.ticks));
        let thread = self.threads.now_mut();
        (thread.pc, thread.kind, thread.access) = (pc, kind, None);
        if self.jumps.set.contains(&pc) {
            thread.setting = Some(thread.calls.depth());
        } else if self.jumps.jump.contains(&pc) {
            thread.jumping = Some(self.time);
        }
    }

    /// When the instruction that executed last was about to.
    fn stamp(&self) -> Stamp {
        let running = self.threads.running();
        let position = Position { tick: Tick(self.tick), pc: Address(running.state.pc) };
        Stamp { position, thread: running.kernel_id.unwrap_or_default() }
    }

    /// What the last access read or wrote.
    fn value(&mut self, value: u64) {
        let thread = self.threads.now_mut();
        let Some((address, size, write)) = thread.access.take() else { return };
        match thread.kind {
            _ if write => self.tell_value(address, value),
            KIND_RETURN => self.returned(address, value),
            _ if u64::from(size) == POINTER => self.loaded(address, value),
            _ => {}
        }
    }

    /// A call has pushed its return address. What that is its place and length tell.
    fn called(&mut self, slot: u64) {
        let time = self.time;
        let thread = self.threads.now_mut();
        let Some(length) = self.lengths.get(&thread.pc) else { return };
        let back = thread.pc.wrapping_add(u64::from(*length));
        let data = Call { pc: thread.pc, back, time, ..Call::default() };
        thread.calls.call(slot, data, |_| ());
    }

    /// What the last store wrote is told behind it.
    fn tell_value(&mut self, address: u64, value: u64) {
        let last = self.threads.now_mut().pc;
        let of_it = |write: &&mut Write| write.pc == last && write.address == address;
        let thread = self.threads.now_mut();
        for frame in thread.calls.iter_mut().take(NEAREST) {
            let over = [&mut frame.data.over_return, &mut frame.data.over_saved];
            over.into_iter().flatten().filter(of_it).for_each(|write| write.value = Some(value));
            if frame.data.saved.is_none()
                && address.wrapping_add(POINTER) == frame.slot
                && self.time - frame.data.time <= PROLOGUE
            {
                frame.data.saved = Some(value);
                frame.data.over_saved = None;
            }
            if frame.slot > address.saturating_add(2 * POINTER) {
                break;
            }
        }
        if let Some(Some(write)) = self.buffers.get_mut(&(address & !(POINTER - 1)))
            && write.pc == last
            && write.address == address
        {
            write.value = Some(value);
        }
        if let Some(write) = self.written.as_mut().filter(|write| write.pc == last) {
            write.value = Some(value);
        }
    }

    /// Memory was written, by the program or, without a value, by the kernel.
    fn wrote(&mut self, address: u64, size: u64, value: Option<u64>) {
        let end = address.saturating_add(size);
        if self.watched.start < end && address < self.watched.end {
            self.written = Some(self.threads.now().write(address, size, value, self.stamp()));
            return;
        }
        self.change_buffers(address..end, value);
        let stamp = self.stamp();
        let thread = self.threads.now_mut();
        let hit = |slot: u64| slot.saturating_sub(POINTER) < end && address < slot + POINTER;
        if !thread.calls.iter().take(NEAREST).any(|frame| hit(frame.slot)) {
            return;
        }
        if self.deliberate.contains(&thread.pc) && value.is_some() {
            return;
        }
        let write = thread.write(address, size, value, stamp);
        for frame in thread.calls.iter_mut().take(NEAREST).filter(|frame| hit(frame.slot)) {
            if frame.slot < end {
                frame.data.over_return = Some(write.clone());
            }
            if address < frame.slot && frame.data.saved.is_some() {
                frame.data.over_saved = Some(write.clone());
            }
        }
    }

    /// `setjmp` stores into its buffer; whatever else is stored there changes it.
    fn change_buffers(&mut self, range: Range<u64>, value: Option<u64>) {
        let thread = self.threads.now();
        let sets = thread.setting.is_some_and(|depth| thread.calls.depth() == depth);
        let pushed = |slot: u64| slot.checked_sub(range.start).is_some_and(|by| by <= OWN_FRAME);
        let own = thread.calls.top().is_some_and(|frame| pushed(frame.slot));
        let slots = (range.start & !(POINTER - 1)..range.end).step_by(POINTER as usize);
        if sets && !own && range.end - range.start == POINTER {
            slots.for_each(|slot| drop(self.buffers.insert(slot, None)));
            return;
        }
        if self.buffers.is_empty() || range.end - range.start > 1 << 20 {
            return;
        }
        let write = thread.write(range.start, range.end - range.start, value, self.stamp());
        for slot in slots {
            if let Some(changed) = self.buffers.get_mut(&slot) {
                *changed = Some(write.clone());
            }
        }
    }

    /// A pointer was read.
    fn loaded(&mut self, address: u64, value: u64) {
        if self.read.len() == LATELY {
            self.read.pop_front();
        }
        let thread = self.threads.now_mut();
        self.read.push_back((address, value, thread.pc));
        let depth = thread.calls.depth();
        if let Some(frame) = thread.calls.top_mut()
            && address.wrapping_add(POINTER) == frame.slot
        {
            // What was saved is restored once; a function that this one ends with saves anew.
            let differs = frame.data.saved.take().is_some_and(|saved| saved != value);
            if let Some(write) = frame.data.over_saved.take().filter(|_| differs) {
                thread.smashed = Some((depth, address, write));
            }
        }
        let jumps = thread.jumping.is_some_and(|since| self.time - since < LONGEST_JUMP);
        if jumps && let Some(Some(write)) = self.buffers.get(&address).cloned() {
            thread.jumping = None;
            let hijack = astray(self.threads.now(), Overwritten::JumpBuffer, address, write);
            self.tell(hijack);
        }
    }

    /// A return has read its return address.
    fn returned(&mut self, slot: u64, target: u64) {
        let time = self.time;
        let thread = self.threads.now_mut();
        if thread.setting.is_some_and(|depth| thread.calls.depth() <= depth) {
            thread.setting = None;
        }
        let before = thread.callers();
        let frame = thread.calls.returns(slot, |_| ());
        let depth = thread.calls.depth();
        let hijack = match frame {
            Some(frame) if frame.data.back == target => {
                thread.smashed.take_if(|(until, ..)| depth + 1 < *until);
                return;
            }
            Some(frame) if time - frame.data.time <= AT_ONCE => return,
            Some(frame) => frame.data.over_return.map(|write| {
                let what = Overwritten::Return { expected: frame.data.back, target };
                (what, slot, write)
            }),
            None => {
                let smashed = thread.smashed.take();
                smashed.map(|(_, place, write)| (Overwritten::FramePointer, place, write))
            }
        };
        let Some((what, place, write)) = hijack else { return };
        let pc = thread.pc;
        self.tell(Hijack { what, place, pc, callers: before, write });
    }

    fn tell(&mut self, hijack: Hijack) {
        if self.found.len() < MOST {
            self.found.push(hijack);
        }
    }
}

/// Whether an instruction has a memory operand that is the stack pointer and a constant.
fn is_by_stack_pointer(bytes: &[u8], length: u8) -> bool {
    let code = bytes.get(..usize::from(length)).unwrap_or(bytes);
    let instruction = iced_x86::Decoder::new(64, code, DecoderOptions::NONE).decode();
    instruction.memory_base() == Register::RSP && instruction.memory_index() == Register::None
}

fn form(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Form {
    let decoded =
        iced_x86::Decoder::with_ip(64, instruction.code(), instruction.pc, DecoderOptions::NONE)
            .decode();
    Meaning::of(&decoded, factory).form
}

fn astray(thread: &Thread, what: Overwritten, place: u64, write: Write) -> Hijack {
    Hijack { what, place, pc: thread.pc, callers: thread.callers(), write }
}

impl Consumer for Transfers {
    fn records(&mut self, bytes: &[u8]) {
        let Self { shapes, known, lengths, deliberate, forms, .. } = self;
        let factory = &mut InstructionInfoFactory::new();
        let looked = shapes.records(bytes, |record| {
            let Record::Path(path) = record else { return };
            let all = &path.shape.instructions;
            if all.first().is_some_and(|first| known.insert((first.pc, all.len()))) {
                let calls = all.iter().filter(|one| one.kind == KIND_CALL);
                lengths.extend(calls.map(|one| (one.pc, one.length)));
                let plain = all.iter().filter(|one| one.kind == KIND_PLAIN);
                let on_purpose = plain.filter(|one| is_by_stack_pointer(&one.bytes, one.length));
                deliberate.extend(on_purpose.map(|one| one.pc));
                let leads = all.iter().filter(|one| one.kind != KIND_PLAIN);
                forms.extend(leads.map(|one| (one.pc, form(one, factory))));
            }
        });
        self.broken |= looked.is_err();
        let mut decoder = std::mem::take(&mut self.decoder);
        self.broken |= decoder.events(bytes, |event| self.event(&event)).is_err();
        self.decoder = decoder;
    }
}

#[cfg(test)]
mod tests;
