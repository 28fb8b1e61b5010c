//! From records to events.

mod expand;

use crate::calls::Calls;
use crate::record::{self, Cursor, DEFINE, FIELD, FIRST_EXIT, REPEAT_FIELDS};
use crate::shape::{Exit, Segment, Shape};
use expand::explicit_event;
pub(crate) use expand::repetitions;
pub use expand::{address, expand};

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
    /// An access that the filter did not let pass.
    Suspect {
        /// Address of the instruction that makes it.
        pc: u64,
        /// Where.
        address: u64,
        /// Bytes.
        size: u32,
        /// Whether it writes.
        write: bool,
        /// The shadow of its bytes, all together.
        shadow: u8,
        /// When, in ticks, if they are counted.
        time: u64,
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

/// Where the segments of the running thread start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bases {
    /// Of FS.
    pub fs: u64,
    /// Of GS.
    pub gs: u64,
}

impl Bases {
    fn of(self, segment: Segment) -> u64 {
        match segment {
            Segment::Flat => 0,
            Segment::Fs => self.fs,
            Segment::Gs => self.gs,
        }
    }
}

/// Whether it writes, address, bytes.
pub type ExplicitAccess = (bool, u64, u32);

/// Reads the accesses of a record into a list that is empty before.
pub fn read_accesses(mut list: Cursor<'_>, out: &mut Vec<ExplicitAccess>) -> Option<()> {
    out.clear();
    while !list.is_empty() {
        out.push((list.u8()? & 1 != 0, list.u64()?, list.u32()?));
    }
    Some(())
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

/// Memory that the kernel read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer<'bytes> {
    /// Where.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// Whether it wrote.
    pub write: bool,
    /// What was there, where the plan asks for it: before the call or after it.
    pub bytes: Option<&'bytes [u8]>,
}

/// The buffers of a system call.
#[derive(Clone, Copy)]
pub struct Buffers<'bytes>(Cursor<'bytes>);

impl<'bytes> Iterator for Buffers<'bytes> {
    type Item = Option<Buffer<'bytes>>;

    /// The next buffer; an inner `None` if the record is broken.
    fn next(&mut self) -> Option<Self::Item> {
        (!self.0.is_empty()).then(|| {
            let (flags, address, length) = (self.0.u8()?, self.0.u64()?, self.0.u64()?);
            let bytes = if flags & 2 == 0 { None } else { Some(self.0.take(length as usize)?) };
            Some(Buffer { address, length, write: flags & 1 != 0, bytes })
        })
    }
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
                    let Buffer { address, length, write, .. } = buffer;
                    each(Event::Kernel { address, length, write });
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
            } else if kind == record::BACK {
                let mut one = |event| other(&mut state, Record::Single(event));
                self.back(&mut cursor, &mut one).ok_or(Malformed)?;
            } else if let Some(record) = self.one(kind, &mut cursor).ok_or(Malformed)? {
                other(&mut state, record);
            }
        }
        Ok(())
    }

    /// What has returned where the guest is.
    fn back(&mut self, cursor: &mut Cursor<'_>, each: &mut impl FnMut(Event)) -> Option<()> {
        let (pc, stack, value) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        self.calls.back(pc, stack, value, each);
        Some(())
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

    fn one<'bytes>(
        &mut self,
        kind: u32,
        cursor: &mut Cursor<'bytes>,
    ) -> Option<Option<Record<'_, 'bytes>>> {
        Some(match kind {
            record::THREAD => {
                let thread = cursor.u32()?;
                let bases = Bases { fs: cursor.u64()?, gs: cursor.u64()? };
                Some(Record::Thread(thread, bases))
            }
            record::CUT => Some(Record::Cut(cursor.u64()?, cursor.u32()?)),
            record::SYSCALL => {
                let number = cursor.u64()?;
                let mut arguments = [0; 6];
                for argument in &mut arguments {
                    *argument = cursor.u64()?;
                }
                Some(Record::Syscall(number, arguments, cursor.u64()? as i64))
            }
            record::ACCESS => {
                let length = cursor.u32()? as usize;
                Some(Record::Accesses(Cursor::new(cursor.take(length)?)))
            }
            record::BUFFERS => {
                let length = cursor.u32()? as usize;
                Some(Record::Buffers(Buffers(Cursor::new(cursor.take(length)?))))
            }
            record::PROBE => {
                let (pc, registers) = (cursor.u64()?, cursor.u32()?);
                let values = cursor.take(registers.count_ones() as usize * 8)?;
                Some(Record::Probe(pc, registers, values))
            }
            record::ENTER => {
                let event = enter(cursor)?;
                if let Event::Enter { function, back, stack, .. } = event {
                    self.calls.enter(function, back, stack);
                }
                Some(Record::Single(event))
            }
            record::SUSPECT | record::PLAN | record::FORK | record::HANDLER => {
                Some(Record::Single(single(kind, cursor)?))
            }
            _ => Self::path(&mut self.shapes, &mut self.exits, kind, cursor)?.map(Record::Path),
        })
    }

    /// Other records that are about superblocks: definitions, partial executions.
    fn path<'shape, 'bytes>(
        shapes: &'shape mut Vec<Shape>,
        exits: &mut Vec<KnownExit>,
        kind: u32,
        cursor: &mut Cursor<'bytes>,
    ) -> Option<Option<Path<'shape, 'bytes>>> {
        match kind {
            DEFINE => {
                let length = cursor.u32()? as usize;
                let shape = Shape::read(&mut Cursor::new(cursor.take(length)?))?;
                skip_exits(exits, shape.first_exit)?;
                let number = shapes.len() as u32;
                exits.extend(
                    shape.exits.iter().map(|exit| KnownExit { shape: number, exit: *exit }),
                );
                shapes.push(shape);
                Some(None)
            }
            record::FLUSH => {
                exits.clear();
                Some(None)
            }
            record::PARTIAL => {
                let (first_exit, executed) = (cursor.u32()?, cursor.u32()? as u16);
                let number = exits.get(first_exit.checked_sub(FIRST_EXIT)? as usize)?.shape;
                let shape = shapes.get(number as usize)?;
                // A last instruction that traps, and has no fields, counts as executed.
                let before = shape.fields_before.get(executed as usize);
                let fields = usize::from(*before.or(shape.fields_before.last())?);
                (usize::from(executed) <= shape.instructions.len()).then_some(())?;
                let interrupted = shape.repeats(executed);
                let own = if interrupted { REPEAT_FIELDS } else { 0 };
                let payload = cursor.take((fields + own) * FIELD)?;
                Some(Some(Path { shape, number, executed, interrupted, taken: false, payload }))
            }
            _ => None,
        }
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

/// Records that are one event.
fn single(kind: u32, cursor: &mut Cursor<'_>) -> Option<Event> {
    Some(match kind {
        record::SUSPECT => Event::Suspect {
            pc: cursor.u64()?,
            address: cursor.u64()?,
            size: cursor.u32()?,
            write: cursor.u8()? & 1 != 0,
            shadow: cursor.u8()?,
            time: cursor.u64()?,
        },
        record::FORK => Event::Fork(Some(cursor.u32()?).filter(|process| *process != 0)),
        record::HANDLER => {
            Event::Handler { pc: cursor.u64()?, stack: cursor.u64()?, frame: cursor.u64()? }
        }
        _ => Event::Plan(cursor.u32()?),
    })
}

fn enter(cursor: &mut Cursor<'_>) -> Option<Event> {
    let (function, back, stack) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = cursor.u64()?;
    }
    Some(Event::Enter { function, back, stack, arguments })
}

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
    use crate::shape::{Access, Exit, Instruction, Source};

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
        let mut body = Vec::new();
        shape.write(&mut body);
        [&DEFINE.to_le_bytes()[..], &(body.len() as u32).to_le_bytes(), &body].concat()
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
        bytes.extend(record::THREAD.to_le_bytes());
        bytes.extend([&7u32.to_le_bytes()[..], &[0; 8], &0x10_0000u64.to_le_bytes()].concat());
        bytes.extend(record::PARTIAL.to_le_bytes());
        bytes.extend([FIRST_EXIT.to_le_bytes(), 0u32.to_le_bytes()].concat());
        bytes.extend(fields([0x7_0000_0002, 0xffff_fffc, 0x6000, 0x7_0000_0000, 0x6008]));
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
        first.extend([record::ACCESS, 2 * 13].map(u32::to_le_bytes).concat());
        for address in [0x5000u64, 0x6000] {
            first.push(0);
            first.extend(address.to_le_bytes());
            first.extend(4u32.to_le_bytes());
        }
        let mut second = record::CUT.to_le_bytes().to_vec();
        second.extend(0x1000u64.to_le_bytes());
        second.extend(1u32.to_le_bytes());
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for chunk in [first, second] {
            decoder.events(&chunk, |event| events.push(event)).expect("well formed");
        }
        assert_eq!(events, [Event::Interrupted { pc: 0x1000 }, access(0x5000, false)]);
    }
}
