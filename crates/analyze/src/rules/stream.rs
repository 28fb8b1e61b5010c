//! From the records of a stream to a detector: decodes, compiles each translated instruction once,
//! and tells the detector what happened.

use super::detector::{Absent, Buffers, Detector};
use super::machine::bitwise::Constants;
use super::machine::code::{self, Code};
use super::machine::{Access, alignment};
use crate::semantics::Form;
use base::Tick;
use events::decode::{Bases, Decoder, Event, ExplicitAccess, Malformed, Path, Record, expand};
use events::shape::{self, Shape, Source};
use events::suspicion::Suspicion as Met;
use iced_x86::InstructionInfoFactory;
use syscalls::{Before, Content, NoMemory};

/// A detector fed from a stream.
pub struct Stream {
    decoder: Decoder,
    feed: Feed,
    /// Whether the stream was broken somewhere.
    pub broken: bool,
    /// What screens have stopped: of each kind and place the first.
    pub suspicions: Vec<Suspicion>,
    /// Children that were forked, and the detector as it was for each.
    pub forks: Vec<(u32, Detector)>,
}

/// Something that a screen has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The instruction.
    pub pc: u64,
    /// Which screen stopped it, and what that saw.
    pub met: Met,
    /// When, in ticks.
    pub time: u64,
}

/// Suspicions that are kept.
const MOST_SUSPICIONS: usize = 16;

/// Everything but the decoder, which lends out shapes while it is read.
struct Feed {
    detector: Detector,
    /// For each shape its instructions.
    shapes: Vec<Compiled>,
    factory: InstructionInfoFactory,
    bases: Bases,
    explicit: Vec<ExplicitAccess>,
    accesses: Vec<Access>,
    /// What the kernel touched in the system call that comes next.
    buffers: Buffers,
    /// Whether the stream said what that system call read and wrote.
    told: bool,
}

/// The instructions of a shape.
#[derive(Clone, Default)]
struct Compiled {
    codes: Vec<Code>,
    /// For each instruction how many accesses of the shape were made with it and before it.
    made: Vec<u16>,
    /// Whether each instruction is a tick when it has executed, if it is no conditional branch that was not
    /// taken.
    ticks: Vec<bool>,
    /// Whether the shape and the fields of a record tell all accesses, and no values are observed:
    /// then nothing needs to be expanded.
    is_plain: bool,
}

impl Compiled {
    /// Ticks of the first so many instructions. Superblocks run on past branches that are not taken.
    fn ticks(&self, executed: u16, taken: bool) -> u16 {
        let Some(last) = usize::from(executed).checked_sub(1) else { return 0 };
        let (Some(code), Some(is_tick)) = (self.codes.get(last), self.ticks.get(last)) else {
            return 0;
        };
        let conditional = matches!(code.meaning.form, Form::Branch(_));
        code.ticks_before + u16::from(*is_tick && (taken || !conditional))
    }
}

impl Stream {
    /// Says at which tick the run begins, so that what is found has its position.
    pub fn begin_at(&mut self, tick: Tick) {
        self.feed.detector.machine.clock.tick = Some(tick);
    }

    /// A stream for a detector.
    #[must_use]
    pub fn new(detector: Detector) -> Self {
        let feed = Feed {
            detector,
            shapes: Vec::new(),
            factory: InstructionInfoFactory::new(),
            bases: Bases::default(),
            explicit: Vec::new(),
            accesses: Vec::new(),
            buffers: Buffers::default(),
            told: false,
        };
        let decoder = Decoder::default();
        Self { decoder, feed, broken: false, suspicions: Vec::new(), forks: Vec::new() }
    }

    /// A stream that goes on from here: of the same calls, with a copy of the detector.
    #[must_use]
    pub fn branch(&self) -> Self {
        let mut branch = Self::new(self.feed.detector.clone());
        branch.decoder = self.decoder.going_on();
        branch.feed.bases = self.feed.bases;
        branch
    }

    /// The detector.
    #[must_use]
    pub fn detector(&self) -> &Detector {
        &self.feed.detector
    }

    /// The detector, to tell it of functions.
    pub fn detector_mut(&mut self) -> &mut Detector {
        &mut self.feed.detector
    }

    /// An instruction with these bytes faulted when it accessed an address.
    pub fn fault(&mut self, pc: u64, bytes: &[u8], access: Access) {
        self.feed.fault(pc, bytes, access);
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let feed = &mut self.feed;
        let mut whole = true;
        let (suspicions, forks) = (&mut self.suspicions, &mut self.forks);
        let mut other = |feed: &mut Feed, record: Record<'_, '_>| {
            match &record {
                Record::Single(Event::Suspect { pc, time, suspicion }) => {
                    let same = |known: &Suspicion| known.pc == *pc && known.met.is_like(suspicion);
                    if suspicions.len() < MOST_SUSPICIONS && !suspicions.iter().any(same) {
                        suspicions.push(Suspicion { pc: *pc, met: *suspicion, time: *time });
                    }
                }
                Record::Single(Event::Fork(Some(child))) => forks.push((*child, feed.child())),
                _ => {}
            }
            feed.record(record).is_some()
        };
        let state = (feed, &mut whole);
        self.decoder.paths(
            bytes,
            state,
            |(feed, whole), path| **whole &= feed.path(&path).is_some(),
            |(feed, whole), record| **whole &= other(feed, record),
        )?;
        if whole { Ok(()) } else { Err(Malformed) }
    }
}

impl events::Consumer for Stream {
    fn records(&mut self, bytes: &[u8]) {
        self.broken |= self.feed(bytes).is_err();
    }

    fn end(&mut self) {
        self.feed.detector.exit();
    }
}

impl Feed {
    /// The detector as a child begins with it.
    fn child(&self) -> Detector {
        let mut detector = self.detector.clone();
        detector.fork();
        detector
    }

    fn record(&mut self, record: Record<'_, '_>) -> Option<()> {
        match record {
            Record::Path(path) => self.path(&path)?,
            Record::Thread(thread, bases) => {
                self.bases = bases;
                self.detector.machine.switch(thread);
                self.detector.machine.set_thread_pointer(bases.fs);
            }
            Record::Syscall(number, arguments, answer) => {
                if !self.told {
                    self.by_arguments(number, arguments, answer);
                }
                self.detector.system_call(number, arguments, answer, &self.buffers);
                self.buffers.clear();
                self.told = false;
            }
            Record::Accesses(list) => events::decode::read_accesses(list, &mut self.explicit)?,
            Record::Cut(_, made) => {
                self.explicit.truncate(made as usize);
                self.explicit.clear();
            }
            Record::Single(event) => self.single(event),
            Record::Buffers(buffers) => {
                self.told = true;
                for buffer in buffers {
                    let buffer = buffer?;
                    let range = (buffer.address, buffer.length);
                    if let Some(from) = buffer.absent {
                        let (address, length) = range;
                        let absent = Absent { address, length, from, write: buffer.write };
                        self.buffers.absent.push(absent);
                        continue;
                    }
                    match buffer.write {
                        true => {
                            self.detector.machine.kernel_wrote(buffer.address, buffer.length);
                            self.buffers.written.push(range);
                        }
                        false => self.buffers.read.push(range),
                    }
                }
            }
            Record::Probe(pc, registers, values) => {
                let told = (0..32u8).filter(|register| registers & 1 << register != 0);
                let values = values.as_chunks().0.iter();
                for (register, value) in told.zip(values) {
                    self.detector.machine.probed(pc, register, u64::from_le_bytes(*value));
                }
            }
        }
        Some(())
    }

    /// Where the stream does not tell what the kernel read and wrote, the arguments and the answer
    /// do, but for what lies behind pointers: enough not to blame a program for using what the kernel
    /// gave it.
    fn by_arguments(&mut self, number: u64, arguments: [u64; 6], answer: i64) {
        let (mut written, mut reads) = (Vec::new(), Vec::new());
        let before = Before::default();
        syscalls::written(number, arguments, answer, &before, &NoMemory, &mut written);
        syscalls::reads(number, arguments, &NoMemory, &mut reads);
        for range in written {
            self.detector.machine.mark_written(range.address, range.length);
        }
        let reads = reads.iter().filter(|read| read.content != Content::Parameters);
        self.buffers.read.extend(reads.map(|read| (read.range.address, read.range.length)));
    }

    fn single(&mut self, event: Event) {
        match event {
            Event::Enter { function, back, stack, arguments } => {
                self.detector.enter(function, back, stack, arguments);
            }
            Event::Return { function, stack, value } => {
                self.detector.leave(function, stack, value);
            }
            Event::Touch(touch) => self.detector.touch(&touch),
            Event::Fork(None) => self.detector.fork(),
            Event::Handler { stack, frame, .. } => self.detector.machine.handles(stack, frame),
            Event::Suspect { suspicion: Met::InvalidCall { recounted: true, .. }, .. } => {
                self.detector.machine.forget_heap();
            }
            _ => {}
        }
    }

    fn path(&mut self, path: &Path<'_, '_>) -> Option<()> {
        let number = path.number as usize;
        if self.shapes.len() <= number {
            self.shapes.resize_with(number + 1, Compiled::default);
        }
        if self.shapes[number].codes.is_empty() {
            self.shapes[number] = self.compile(path.shape);
        }
        let done = match self.shapes[number].is_plain && !path.interrupted {
            true => self.plain_path(path),
            false => self.expanded_path(path),
        };
        if let Some(tick) = &mut self.detector.machine.clock.tick {
            tick.0 += u64::from(self.shapes[number].ticks(path.executed, path.taken));
        }
        done
    }

    /// Goes through a path whose accesses need no expansion.
    fn plain_path(&mut self, path: &Path<'_, '_>) -> Option<()> {
        let Self { detector, shapes, bases, accesses, .. } = self;
        let Compiled { codes, made, .. } = &shapes[path.number as usize];
        let mut from = 0;
        for (code, made) in codes.iter().zip(made).take(usize::from(path.executed)) {
            let to = usize::from(*made);
            accesses.clear();
            for access in &path.shape.accesses[from..to] {
                let address = events::decode::address(access, path.payload, *bases)?;
                let (size, write) = (u32::from(access.size), access.write);
                accesses.push(Access { address, size, write });
            }
            from = to;
            detector.instruction(code, accesses);
        }
        accesses.clear();
        Some(())
    }

    fn expanded_path(&mut self, path: &Path<'_, '_>) -> Option<()> {
        let Self { detector, shapes, bases, explicit, accesses, .. } = self;
        let codes = &shapes[path.number as usize].codes;
        // Accesses follow their instruction, so that it is complete when the next one comes.
        let mut open: Option<(usize, bool)> = None;
        let mut index = 0;
        let done = expand(path, *bases, explicit, &mut |event| match event {
            Event::Instruction { .. } | Event::Interrupted { .. } => {
                complete(detector, codes, open.take(), accesses);
                open = Some((index, matches!(event, Event::Instruction { .. })));
                index += 1;
            }
            Event::Access { address, size, write } => {
                accesses.push(Access { address, size, write });
                if write && detector.machine.needs.contents {
                    detector.machine.contents.forget(address, u64::from(size));
                }
            }
            Event::Value(words) => {
                if let Some(access) = accesses.last() {
                    let bytes = words.map(u64::to_le_bytes).concat();
                    let known = &bytes[..bytes.len().min(access.size as usize)];
                    detector.machine.contents.store(access.address, known);
                }
            }
            _ => {}
        });
        complete(detector, codes, open, accesses);
        done
    }

    fn compile(&mut self, shape: &Shape) -> Compiled {
        let mut codes = Vec::with_capacity(shape.instructions.len());
        let mut constants = Constants::default();
        let (mut ticks, mut passed) = (Vec::new(), 0);
        for instruction in &shape.instructions {
            let place = self.detector.machine.chains.place(instruction.pc);
            let (pc, bytes) = (instruction.pc, instruction.code());
            let mut code = code::compile(pc, bytes, place, &mut constants, &mut self.factory);
            let variables = &self.detector.machine.variables;
            if code.takes_frame_address() || code.constants().any(|at| variables.may_have(at)) {
                code.function = self.detector.machine.locals.function(pc);
            }
            code.ticks_before = passed;
            passed += u16::from(code.meaning.form.is_tick(pc, false));
            ticks.push(code.meaning.form.is_tick(pc, true));
            codes.push(code);
        }
        alignment::keep(
            &mut codes,
            shape.instructions.iter().map(|instruction| instruction.code()),
        );
        let made = |index| shape.accesses.partition_point(|access| access.index <= index) as u16;
        let told = |access: &shape::Access| {
            let plain = matches!(access.source, Source::Constant(_) | Source::Field { .. });
            plain && access.value.is_none()
        };
        let is_plain = shape.accesses.iter().all(told) && !self.detector.machine.needs.contents;
        Compiled { made: (0..codes.len() as u16).map(made).collect(), codes, ticks, is_plain }
    }

    fn fault(&mut self, pc: u64, bytes: &[u8], access: Access) {
        let place = self.detector.machine.chains.place(pc);
        let constants = &mut Constants::default();
        let code = code::compile(pc, bytes, place, constants, &mut self.factory);
        // The operand that faulted, in the place of all of them.
        let accesses = code.pointers.iter().map(|pointer| Access {
            size: u32::from(pointer.bytes).max(1),
            write: pointer.write,
            ..access
        });
        let accesses: Vec<Access> = accesses.collect();
        self.detector.interrupted(&code, &accesses);
    }
}

fn complete(
    detector: &mut Detector,
    codes: &[Code],
    open: Option<(usize, bool)>,
    accesses: &mut Vec<Access>,
) {
    if let Some((index, completed)) = open
        && let Some(code) = codes.get(index)
    {
        match completed {
            true => detector.instruction(code, accesses),
            false => detector.interrupted(code, accesses),
        }
    }
    accesses.clear();
}
