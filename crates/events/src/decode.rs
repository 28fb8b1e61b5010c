//! From records to events.

mod expand;

pub use crate::record::list::{Buffer, Buffers, ExplicitAccess, read_accesses};
pub use crate::record::{Bases, Touch};

use crate::calls::Calls;
use crate::record::{Cursor, Entry, FIELD, FIRST_EXIT, Kind, REPEAT_FIELDS, list};
use crate::shape::{Exit, Shape};
use crate::suspicion::Suspicion;
use expand::explicit_event;
pub(crate) use expand::repetitions;
pub use expand::{address, expand, repeated};

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An instruction has executed.
    Instruction {
        /// Its address.
        pc: u64,
        /// One of the `KIND_*` constants of [`crate::shape`].
        kind: u8,
        /// For a conditional branch: whether it was taken.
        taken: bool,
    },
    /// An instruction has begun but not completed: the accesses that follow were made before a
    /// fault or a signal. If it goes on later, that is another event.
    Interrupted {
        /// Its address.
        pc: u64,
    },
    /// The last instruction read or wrote memory.
    Access {
        /// Where.
        address: u64,
        /// Bytes.
        size: u32,
        /// Whether it wrote.
        write: bool,
    },
    /// What the last access read or wrote, little end first; as many bytes as it has.
    Value([u64; 4]),
    /// From here on this thread runs.
    Thread(u32),
    /// A system call has returned.
    Syscall {
        /// Its number.
        number: u64,
        /// Its arguments.
        arguments: [u64; 6],
        /// Its answer.
        answer: i64,
    },
    /// The kernel read or wrote memory in the system call that comes next.
    Kernel {
        /// Where.
        address: u64,
        /// Bytes.
        length: u64,
        /// Whether it wrote.
        write: bool,
    },
    /// Something did not pass a screen.
    Suspect {
        /// Address of the instruction that is about to execute, or if it is a repeated string
        /// instruction, has just done so.
        pc: u64,
        /// When, in ticks, if they are counted.
        time: u64,
        /// Which screen, and what it saw.
        suspicion: Suspicion,
    },
    /// The instruction at a probed place is about to execute; its registers follow.
    Probe {
        /// The place.
        pc: u64,
    },
    /// A register at the last probe.
    Register {
        /// The processor's number, or 16 for the flags.
        register: u8,
        /// What it holds.
        value: u64,
    },
    /// A probed function has been called.
    Enter {
        /// Its address.
        function: u64,
        /// Where it will return to.
        back: u64,
        /// Stack pointer at its entry: the return address stands there.
        stack: u64,
        /// rdi, rsi, rdx, rcx, r8, r9.
        arguments: [u64; 6],
    },
    /// A probed function has returned to its caller.
    Return {
        /// Its address.
        function: u64,
        /// Stack pointer at its entry.
        stack: u64,
        /// rax.
        value: u64,
    },
    /// From here on the plan of this number is in force.
    Plan(u32),
    /// A child of this number has been made, or none: from here on this is that child.
    Fork(Option<u32>),
    /// A signal handler comes next.
    Handler {
        /// Where the thread was.
        pc: u64,
        /// Its stack pointer there.
        stack: u64,
        /// Stack pointer at the handler's entry: its return address stands there.
        frame: u64,
    },
    /// A function of the C library has been entered, and will touch memory.
    Touch(Touch),
}

/// The stream is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Knows the shapes of a stream, and expands its records.
#[derive(Default)]
pub struct Decoder {
    shapes: Vec<Shape>,
    /// What every exit number stands for, from [`FIRST_EXIT`] on.
    exits: Vec<KnownExit>,
    bases: Bases,
    /// Accesses that the next superblock's one instruction makes.
    explicit: Vec<ExplicitAccess>,
    /// Calls of probed functions under way.
    calls: Calls,
}

/// An exit with its shape: all that is needed to get over its record.
#[derive(Clone, Copy)]
struct KnownExit {
    shape: u32,
    exit: Exit,
}

/// A superblock that was executed, wholly or in part.
pub struct Path<'shape, 'bytes> {
    /// Its facts.
    pub shape: &'shape Shape,
    /// Number of the shape, by order of definition.
    pub number: u32,
    /// Instructions that executed.
    pub executed: u16,
    /// Whether the next one is a repeated string instruction that may have got some way.
    pub interrupted: bool,
    /// Whether the last one is a conditional branch that was taken.
    pub taken: bool,
    /// Fields.
    pub payload: &'bytes [u8],
}

/// One record.
pub enum Record<'shape, 'bytes> {
    /// A superblock was executed.
    Path(Path<'shape, 'bytes>),
    /// From here on this thread runs, with these segments.
    Thread(u32, Bases),
    /// A system call has returned: number, arguments, answer.
    Syscall(u64, [u64; 6], i64),
    /// Accesses of the next superblock's one instruction.
    Accesses(Cursor<'bytes>),
    /// The instruction at this address made only so many of these accesses, and did not complete.
    Cut(u64, u32),
    /// What the kernel read and wrote in the system call that comes next.
    Buffers(Buffers<'bytes>),
    /// What stands for itself.
    Single(Event),
    /// A probed place, which registers, and their values.
    Probe(u64, u32, &'bytes [u8]),
}

impl Path<'_, '_> {
    /// Instructions that executed or got some way.
    pub fn begun(&self) -> u16 {
        self.executed + u16::from(self.interrupted)
    }
}

impl Decoder {
    /// A decoder for a stream that begins where this one's ends: it knows the calls under way.
    #[must_use]
    pub fn going_on(&self) -> Self {
        Self { calls: self.calls.clone(), bases: self.bases, ..Self::default() }
    }

    /// Expands whole records into events.
    pub fn events(&mut self, bytes: &[u8], mut each: impl FnMut(Event)) -> Result<(), Malformed> {
        let (mut bases, mut explicit) = (self.bases, std::mem::take(&mut self.explicit));
        let mut broken = false;
        let done = self.records(bytes, |record| match record {
            Record::Thread(thread, fresh) => {
                bases = fresh;
                each(Event::Thread(thread));
            }
            Record::Syscall(number, arguments, answer) => {
                each(Event::Syscall { number, arguments, answer });
            }
            Record::Accesses(list) => broken |= read_accesses(list, &mut explicit).is_none(),
            Record::Cut(pc, made) => {
                each(Event::Interrupted { pc });
                let made = explicit.len().min(made as usize);
                explicit.drain(..).take(made).for_each(|access| each(explicit_event(access)));
            }
            Record::Path(path) => {
                broken |= expand(&path, bases, &mut explicit, &mut each).is_none();
            }
            Record::Single(event) => each(event),
            Record::Probe(pc, registers, values) => {
                each(Event::Probe { pc });
                probed(registers, values, &mut each);
            }
            Record::Buffers(buffers) => {
                for buffer in buffers.map_while(|buffer| {
                    broken |= buffer.is_none();
                    buffer
                }) {
                    let Buffer { address, length, write, absent, .. } = buffer;
                    if absent.is_none() {
                        each(Event::Kernel { address, length, write });
                    }
                }
            }
        });
        (self.bases, self.explicit) = (bases, explicit);
        if broken { Err(Malformed) } else { done }
    }

    /// Goes through whole records without expanding them.
    pub fn records(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Record<'_, '_>),
    ) -> Result<(), Malformed> {
        self.paths(bytes, &mut each, |each, path| each(Record::Path(path)), |each, it| each(it))
    }

    /// The same with a function of its own for paths, which are nearly all of a stream: it is worth
    /// a register or two not to make a [`Record`] of each.
    pub fn paths<State>(
        &mut self,
        bytes: &[u8],
        mut state: State,
        mut path: impl FnMut(&mut State, Path<'_, '_>),
        mut other: impl FnMut(&mut State, Record<'_, '_>),
    ) -> Result<(), Malformed> {
        let mut cursor = Cursor::new(bytes);
        while !cursor.is_empty() {
            let kind = cursor.u32().ok_or(Malformed)?;
            if kind >= FIRST_EXIT {
                path(&mut state, self.whole_path(kind, &mut cursor).ok_or(Malformed)?);
                continue;
            }
            let each = &mut |record: Record<'_, '_>| other(&mut state, record);
            let kind = Kind::of(kind).ok_or(Malformed)?;
            self.one(kind, &mut cursor, each).ok_or(Malformed)?;
        }
        Ok(())
    }

    /// A superblock that was left by one of its exits.
    #[inline]
    fn whole_path<'bytes>(
        &self,
        number: u32,
        cursor: &mut Cursor<'bytes>,
    ) -> Option<Path<'_, 'bytes>> {
        let known = self.exits.get((number - FIRST_EXIT) as usize)?;
        let Exit { executed, fields, taken } = known.exit;
        let shape = self.shapes.get(known.shape as usize)?;
        let payload = cursor.take(usize::from(fields) * FIELD)?;
        let number = known.shape;
        Some(Path { shape, number, executed, interrupted: false, taken, payload })
    }

    /// Any other record.
    fn one(
        &mut self,
        kind: Kind,
        cursor: &mut Cursor<'_>,
        each: &mut impl FnMut(Record<'_, '_>),
    ) -> Option<()> {
        match kind {
            Kind::Define => self.define(list::read_shape(cursor)?)?,
            Kind::Partial => each(Record::Path(self.partial(cursor)?)),
            Kind::Access => each(Record::Accesses(list::access_list(cursor)?)),
            Kind::Buffers => each(Record::Buffers(Buffers::read(cursor)?)),
            Kind::Probe => {
                let (pc, registers, values) = list::read_probe(cursor)?;
                each(Record::Probe(pc, registers, values));
            }
            kind => self.entry(Entry::read(kind, cursor)?, each),
        }
        Some(())
    }

    fn entry(&mut self, entry: Entry, each: &mut impl FnMut(Record<'_, '_>)) {
        let single = match entry {
            Entry::Thread { thread, bases } => return each(Record::Thread(thread, bases)),
            Entry::Syscall { number, arguments, answer } => {
                return each(Record::Syscall(number, arguments, answer));
            }
            Entry::Flush => return self.exits.clear(),
            Entry::Cut { pc, made } => return each(Record::Cut(pc, made)),
            Entry::Back { pc, stack, value } => {
                return self.calls.back(pc, stack, value, |event| each(Record::Single(event)));
            }
            Entry::Enter { function, back, stack, arguments } => {
                self.calls.enter(function, back, stack);
                Event::Enter { function, back, stack, arguments }
            }
            Entry::Suspect { pc, time, suspicion } => Event::Suspect { pc, time, suspicion },
            Entry::Plan(number) => Event::Plan(number),
            Entry::Fork(process) => Event::Fork(Some(process).filter(|process| *process != 0)),
            Entry::Handler { pc, stack, frame } => Event::Handler { pc, stack, frame },
            Entry::Touch(touch) => Event::Touch(touch),
        };
        each(Record::Single(single));
    }

    /// A superblock has been translated.
    fn define(&mut self, shape: Shape) -> Option<()> {
        skip_exits(&mut self.exits, shape.first_exit)?;
        let number = self.shapes.len() as u32;
        let known = |exit: &Exit| KnownExit { shape: number, exit: *exit };
        self.exits.extend(shape.exits.iter().map(known));
        self.shapes.push(shape);
        Some(())
    }

    /// A superblock that was left in the middle.
    fn partial<'bytes>(&self, cursor: &mut Cursor<'bytes>) -> Option<Path<'_, 'bytes>> {
        let (first_exit, executed) = list::read_partial(cursor)?;
        let number = self.exits.get(first_exit.checked_sub(FIRST_EXIT)? as usize)?.shape;
        let shape = self.shapes.get(number as usize)?;
        // A last instruction that traps, and has no fields, counts as executed.
        let before = shape.fields_before.get(executed as usize);
        let fields = usize::from(*before.or(shape.fields_before.last())?);
        (usize::from(executed) <= shape.instructions.len()).then_some(())?;
        let interrupted = shape.repeats(executed);
        let own = if interrupted { REPEAT_FIELDS } else { 0 };
        let payload = cursor.take((fields + own) * FIELD)?;
        Some(Path { shape, number, executed, interrupted, taken: false, payload })
    }
}

/// Exits of superblocks that are not observed have numbers too.
fn skip_exits(exits: &mut Vec<KnownExit>, first: u32) -> Option<()> {
    let before = first.checked_sub(FIRST_EXIT)? as usize;
    let skipped = before.checked_sub(exits.len())?;
    let unknown = KnownExit { shape: UNOBSERVED, exit: Exit::default() };
    (skipped <= MOST_SKIPPED).then(|| exits.resize(before, unknown))
}

/// Stands for the number of a shape where there is none.
const UNOBSERVED: u32 = u32::MAX;
/// More exits than that are never between two superblocks: the stream is broken.
const MOST_SKIPPED: usize = 1 << 24;

fn probed(registers: u32, values: &[u8], each: &mut impl FnMut(Event)) {
    let wanted = (0..32u8).filter(|register| registers & 1 << register != 0);
    let mut values = Cursor::new(values);
    for register in wanted {
        if let Some(value) = values.u64() {
            each(Event::Register { register, value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Access, Instruction, Segment, Source};

    /// A superblock of one instruction with these accesses.
    fn defined(accesses: Vec<Access>) -> Vec<u8> {
        let fields = if accesses.is_empty() { 0 } else { REPEAT_FIELDS as u16 };
        let shape = Shape {
            first_exit: FIRST_EXIT,
            instructions: vec![Instruction { pc: 0x1000, length: 2, ..Instruction::default() }],
            accesses,
            exits: vec![Exit { executed: 1, fields, taken: false }],
            fields_before: vec![0],
        };
        list::define(&shape)
    }

    fn movs(narrow: bool) -> Vec<Access> {
        let side = |write: bool| Access {
            index: 0,
            write,
            segment: if write { Segment::Flat } else { Segment::Gs },
            from_source: !write,
            narrow,
            size: 4,
            source: Source::Repeat { field: 0 },
            value: None,
        };
        vec![side(false), side(true)]
    }

    fn fields(values: [u64; 5]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()[..FIELD].to_vec()).collect()
    }

    fn decode(bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        Decoder::default().events(bytes, |event| events.push(event)).expect("well formed");
        events
    }

    fn access(address: u64, write: bool) -> Event {
        Event::Access { address, size: 4, write }
    }

    #[test]
    fn a_string_instruction_reads_and_writes_by_turns_in_its_direction() {
        let mut bytes = defined(movs(false));
        bytes.extend(FIRST_EXIT.to_le_bytes());
        bytes.extend(fields([2, 0x5000, 0x6000, 0, 0x6000 - 8]));
        let expected = [
            Event::Instruction { pc: 0x1000, kind: 0, taken: false },
            access(0x5000, false),
            access(0x6000, true),
            access(0x4ffc, false),
            access(0x5ffc, true),
        ];
        assert_eq!(decode(&bytes), expected);
    }

    #[test]
    fn one_with_32_bit_addresses_wraps_before_its_segment_is_added() {
        let mut bytes = defined(movs(true));
        let bases = Bases { fs: 0, gs: 0x10_0000 };
        Entry::Thread { thread: 7, bases }.write(&mut bytes);
        let fields = [0x7_0000_0002, 0xffff_fffc, 0x6000, 0x7_0000_0000, 0x6008];
        bytes.extend(list::partial(FIRST_EXIT, 0, &[], &fields));
        let expected = [
            Event::Thread(7),
            Event::Interrupted { pc: 0x1000 },
            access(0x1_000f_fffc, false),
            access(0x6000, true),
            access(0x10_0000, false),
            access(0x6004, true),
        ];
        assert_eq!(decode(&bytes), expected);
    }

    #[test]
    fn a_cut_keeps_the_accesses_that_were_made_also_across_chunks() {
        let mut first = defined(Vec::new());
        first.extend(list::accesses(&[(false, 0x5000, 4), (false, 0x6000, 4)]));
        let second = Entry::Cut { pc: 0x1000, made: 1 }.bytes();
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for chunk in [first, second] {
            decoder.events(&chunk, |event| events.push(event)).expect("well formed");
        }
        assert_eq!(events, [Event::Interrupted { pc: 0x1000 }, access(0x5000, false)]);
    }
}
