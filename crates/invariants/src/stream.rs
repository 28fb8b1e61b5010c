//! From the records of a replay to what a learner is told.
//!
//! **Asks for** a plan with values, the ranges that system calls read and write, and the calls of the functions
//! of its layout ([`plan`]). What a library or the kernel does to memory counts as done by the call in the
//! program's own code that led there: the last one that its thread made.

use crate::anomaly::Occurrence;
use crate::heap::Allocating;
use crate::layout::Layout;
use crate::learner::{Access, Actor, By, Learner};
use crate::model::SiteId;
use analyze::model::threads::Threads;
use analyze::semantics::{Form, Meaning};
use base::Tick;
use events::decode::{Bases, ExplicitAccess, Path, Record, expand, read_accesses};
use events::plan::{Execution, Observe, Stops, Syscalls};
use events::shape::{KIND_CALL, KIND_JUMP, Shape};
use events::{Consumer, Decoder, Event, Plan};
use iced_x86::{Decoder as Disassembler, DecoderOptions, InstructionInfoFactory, OpKind, Register};
use std::sync::{Arc, Mutex, PoisonError};
use syscalls::number as n;

/// The plan for a program of this layout.
#[must_use]
pub fn plan(layout: &Layout) -> Plan {
    let mut functions: Vec<u64> =
        layout.functions.keys().chain(layout.allocators.keys()).copied().collect();
    functions.sort_unstable();
    functions.dedup();
    let execution = Execution::Values;
    let observe = Observe { execution, syscalls: Syscalls::Ranges, ..Observe::default() };
    Plan { observe, stops: Stops::at_functions(functions), ..Plan::default() }
}

/// What is known of an instruction before it runs.
#[derive(Clone, Copy)]
struct Code {
    pc: u64,
    kind: u8,
    form: Form,
    /// Whether it is the program's own.
    own: bool,
    /// Whether what it reads and writes are whole numbers or addresses.
    scalar: bool,
    /// Its site, once it was asked for.
    site: Option<SiteId>,
    /// Whether it has executed before.
    seen: bool,
}

#[derive(Default)]
struct Thread {
    kernel_id: u32,
    /// The last call of the program's own code.
    call: Option<u64>,
    allocating: Allocating,
}

/// Feeds a learner.
pub struct Stream {
    decoder: Decoder,
    bases: Bases,
    explicit: Vec<ExplicitAccess>,
    codes: Vec<Vec<Code>>,
    factory: InstructionInfoFactory,
    threads: Threads<Thread>,
    learner: Learner,
    tick: u64,
    step: u64,
    /// Whether records made no sense.
    broken: bool,
    /// Where the learner goes when the stream has ended.
    done: Arc<Mutex<Option<Ended>>>,
}

/// A stream that has ended.
pub struct Ended {
    /// The learner.
    pub learner: Learner,
    /// Whether records made no sense.
    pub broken: bool,
    /// Instructions that executed.
    pub steps: u64,
}

/// Where the learner will be when the stream has ended.
#[derive(Clone, Default)]
pub struct Waiting(Arc<Mutex<Option<Ended>>>);

impl Waiting {
    /// The learner, once.
    #[must_use]
    pub fn take(&self) -> Option<Ended> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An access of the instruction that is being gone through, until its value is told.
#[derive(Clone, Copy)]
struct Pending {
    address: u64,
    size: u32,
    write: bool,
}

impl Stream {
    /// A stream that begins at a tick, and where its learner will be afterwards.
    #[must_use]
    pub fn new(learner: Learner, begin: Tick) -> (Self, Waiting) {
        let waiting = Waiting::default();
        let stream = Self {
            decoder: Decoder::default(),
            bases: Bases::default(),
            explicit: Vec::new(),
            codes: Vec::new(),
            factory: InstructionInfoFactory::new(),
            threads: Threads::default(),
            learner,
            tick: begin.0,
            step: 0,
            broken: false,
            done: waiting.0.clone(),
        };
        (stream, waiting)
    }

    fn record(&mut self, record: Record<'_, '_>) {
        match record {
            Record::Path(path) => self.path(&path),
            Record::Thread(id, bases) => {
                self.bases = bases;
                self.threads.switch(id, self.step);
                self.threads.now_mut().kernel_id = id;
            }
            Record::Accesses(list) => {
                self.broken |= read_accesses(list, &mut self.explicit).is_none();
            }
            Record::Cut(pc, made) => self.cut(pc, made),
            Record::Buffers(buffers) => {
                let touched = buffers.map_while(|buffer| buffer);
                for buffer in touched.filter(|buffer| buffer.absent.is_none()) {
                    let pending = Pending { address: buffer.address, size: 0, write: buffer.write };
                    self.by_others(By::Kernel, pending, buffer.length);
                }
            }
            Record::Syscall(number, ..) if number == n::exit => self.threads.end(self.step),
            Record::Single(event) => self.single(&event),
            Record::Syscall(..) | Record::Probe(..) => {}
        }
    }

    fn single(&mut self, event: &Event) {
        match *event {
            Event::Fork(None) => self.threads.fork(),
            Event::Enter { function, back, stack, arguments } => {
                self.learner.stack_at(stack);
                let caller = self.call_site();
                let (who, mut allocating) = self.take_allocating();
                let call = (function, back, stack, arguments);
                self.learner.enter(call, caller, &mut allocating, who);
                self.threads.now_mut().allocating = allocating;
            }
            Event::Return { function, stack, value } => {
                let (who, mut allocating) = self.take_allocating();
                self.learner.leave((function, stack, value), &mut allocating, who);
                self.threads.now_mut().allocating = allocating;
            }
            _ => {}
        }
    }

    fn take_allocating(&mut self) -> ((u32, Occurrence), Allocating) {
        let thread = self.threads.running().number;
        let pc = self.threads.now().call.unwrap_or_default();
        let now = self.now(pc);
        ((thread, now), std::mem::take(&mut self.threads.now_mut().allocating))
    }

    fn now(&self, pc: u64) -> Occurrence {
        Occurrence { tick: self.tick, pc, thread: self.threads.now().kernel_id, step: self.step }
    }

    /// The last call that the thread's own code made.
    fn call_site(&mut self) -> Option<SiteId> {
        let pc = self.threads.now().call?;
        Some(self.learner.site(pc))
    }

    fn cut(&mut self, pc: u64, made: u32) {
        let made = self.explicit.len().min(made as usize);
        let accesses: Vec<ExplicitAccess> = self.explicit.drain(..).take(made).collect();
        let own = self.learner.layout().is_own(pc);
        let (kind, form, scalar) = (0, Form::Plain, false);
        let mut code = Code { pc, kind, form, own, scalar, site: None, seen: true };
        for (write, address, size) in accesses {
            self.access(&mut code, Pending { address, size, write }, None);
        }
    }

    fn path(&mut self, path: &Path<'_, '_>) {
        let number = path.number as usize;
        if self.codes.get(number).is_none_or(Vec::is_empty) {
            self.codes.resize_with(self.codes.len().max(number + 1), Vec::new);
            self.codes[number] = self.compile(path.shape);
        }
        let mut codes = std::mem::take(&mut self.codes[number]);
        let (bases, mut explicit) = (self.bases, std::mem::take(&mut self.explicit));
        let mut pending: Option<Pending> = None;
        let mut rest = codes.iter_mut();
        let mut executing: Option<(&mut Code, bool, bool)> = None;
        let done = expand(path, bases, &mut explicit, &mut |event| match event {
            Event::Instruction { .. } | Event::Interrupted { .. } => {
                if let Some((code, completed, taken)) = executing.take() {
                    self.flush(code, &mut pending, None);
                    self.completed(code, completed, taken);
                }
                let taken = matches!(event, Event::Instruction { taken: true, .. });
                let completed = matches!(event, Event::Instruction { .. });
                executing = rest.next().map(|code| (code, completed, taken));
                if let Some((code, ..)) = &mut executing {
                    self.begins(code);
                }
            }
            Event::Access { address, size, write } => {
                if let Some((code, ..)) = &mut executing {
                    self.flush(code, &mut pending, None);
                }
                pending = Some(Pending { address, size, write });
            }
            Event::Value(words) => {
                if let Some((code, ..)) = &mut executing {
                    self.flush(code, &mut pending, Some(words[0]));
                }
            }
            _ => {}
        });
        if let Some((code, completed, taken)) = executing {
            self.flush(code, &mut pending, None);
            self.completed(code, completed, taken);
        }
        self.codes[number] = codes;
        self.explicit = explicit;
        self.broken |= done.is_none();
    }

    fn compile(&mut self, shape: &Shape) -> Vec<Code> {
        let code = |instruction: &events::shape::Instruction| {
            let (pc, bytes) = (instruction.pc, instruction.code());
            let decoded = Disassembler::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
            let form = Meaning::of(&decoded, &mut self.factory).form;
            let own = self.learner.layout().is_own(pc);
            let (kind, scalar) = (instruction.kind, is_scalar(&decoded));
            Code { pc, kind, form, own, scalar, site: None, seen: false }
        };
        shape.instructions.iter().map(code).collect()
    }

    fn begins(&mut self, code: &mut Code) {
        if !code.own {
            return;
        }
        if code.kind == KIND_CALL {
            self.threads.now_mut().call = Some(code.pc);
        }
        if !std::mem::replace(&mut code.seen, true) {
            let now = self.now(code.pc);
            self.learner.execute(now);
        }
    }

    fn completed(&mut self, code: &Code, completed: bool, taken: bool) {
        if completed {
            self.step += 1;
            self.tick += u64::from(code.form.is_tick(code.pc, taken));
        }
    }

    fn flush(&mut self, code: &mut Code, pending: &mut Option<Pending>, value: Option<u64>) {
        if let Some(access) = pending.take() {
            self.access(code, access, value);
        }
    }

    fn access(&mut self, code: &mut Code, access: Pending, value: Option<u64>) {
        let Pending { address, size, write } = access;
        if code.own && code.kind == KIND_CALL && write {
            self.learner.stack_at(address);
            return;
        }
        if !self.learner.is_watched(address, u64::from(size)) {
            return;
        }
        if !code.own {
            return self.by_others(By::Library, access, u64::from(size));
        }
        // Stubs and calls of other files go through tables that the loader fills.
        if matches!(code.kind, KIND_JUMP | KIND_CALL) && self.learner.layout().is_in_file(address) {
            return;
        }
        let site = *code.site.get_or_insert_with(|| self.learner.site(code.pc));
        let thread = self.threads.running().number;
        let who = Actor { site, by: By::Own, thread, now: self.now(code.pc) };
        let value = value.filter(|_| code.scalar && size <= 8);
        self.tell(who, Access { address, size: u64::from(size), value }, write);
    }

    /// A library or the kernel accesses memory.
    fn by_others(&mut self, by: By, access: Pending, size: u64) {
        // An access of an instruction has been looked at; what the kernel touches may be long.
        let site = self.call_site().unwrap_or(SiteId::EXTERNAL);
        let pc = self.threads.now().call.unwrap_or_default();
        let thread = self.threads.running().number;
        let who = Actor { site, by, thread, now: self.now(pc) };
        self.tell(who, Access { address: access.address, size, value: None }, access.write);
    }

    fn tell(&mut self, who: Actor, access: Access, write: bool) {
        if write {
            self.learner.write(who, access);
        } else {
            self.learner.read(who, access);
        }
    }
}

impl Consumer for Stream {
    fn records(&mut self, bytes: &[u8]) {
        let mut decoder = std::mem::take(&mut self.decoder);
        self.broken |= decoder.records(bytes, |record| self.record(record)).is_err();
        self.decoder = decoder;
    }

    fn end(&mut self) {
        let idle = Learner::idle();
        let learner = std::mem::replace(&mut self.learner, idle);
        let ended = Ended { learner, broken: self.broken, steps: self.step };
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
    }
}

/// Whether an instruction moves no floating-point numbers and no vectors.
fn is_scalar(instruction: &iced_x86::Instruction) -> bool {
    let registers = (0..instruction.op_count())
        .filter(|operand| instruction.op_kind(*operand) == OpKind::Register)
        .map(|operand| instruction.op_register(operand));
    let is_general = |register: Register| register.is_gpr();
    let is_x87 = instruction.fpu_stack_increment_info().increment() != 0
        || format!("{:?}", instruction.mnemonic()).starts_with('F');
    registers.into_iter().all(is_general) && !is_x87
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::record::Entry;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn scalars_are_what_general_registers_hold() {
        let decode = |bytes: &[u8]| {
            is_scalar(&Disassembler::with_ip(64, bytes, 0, DecoderOptions::NONE).decode())
        };
        // mov eax,[rdi]; add dword [rdi],1; movsd xmm0,[rdi]; fld qword [rdi]; fstp dword [rdi]; movups [rdi],xmm0
        assert!(decode(&[0x8b, 0x07]) && decode(&[0x83, 0x07, 0x01]));
        assert!(!decode(&[0xf2, 0x0f, 0x10, 0x07]) && !decode(&[0xdd, 0x07]));
        assert!(!decode(&[0xd9, 0x1f]) && !decode(&[0x0f, 0x11, 0x07]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..400)) {
            let (mut stream, waiting) = Stream::new(Learner::idle(), Tick(0));
            stream.records(&bytes);
            stream.end();
            prop_assert!(waiting.take().is_some() && waiting.take().is_none());
        }
    }

    #[test]
    fn threads_have_small_numbers() {
        let (mut stream, _) = Stream::new(Learner::idle(), Tick(7));
        let mut bytes = Vec::new();
        for thread in [4711, 4712, 4711] {
            Entry::Thread { thread, bases: Bases::default() }.write(&mut bytes);
        }
        stream.records(&bytes);
        assert!(!stream.broken);
        assert_eq!((stream.threads.running().number, stream.now(1).tick), (1, 7));
    }
}
