//! From records to events.

use crate::record::{self, Cursor, DEFINE, FIELD, FIRST_EXIT};
use crate::shape::{Access, KIND_BRANCH, Shape, Source};

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An instruction has executed (or begun, if a fault follows).
    Instruction {
        /// Its address.
        pc: u64,
        /// One of the `KIND_*` constants of [`crate::shape`].
        kind: u8,
        /// For a conditional branch: whether it was taken.
        taken: bool,
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
}

/// The stream is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Knows the shapes of a stream, and expands its records.
#[derive(Default)]
pub struct Decoder {
    shapes: Vec<Shape>,
    /// Shape and exit of every exit number, from [`FIRST_EXIT`] on.
    exits: Vec<(u32, u16)>,
    fs: u64,
}

type ExplicitAccess = (bool, u64, u32);

fn read_accesses(mut list: Cursor<'_>, out: &mut Vec<ExplicitAccess>) -> Option<()> {
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
    /// Whether the last one is a conditional branch that was taken.
    pub taken: bool,
    /// Fields.
    pub payload: &'bytes [u8],
}

const MASK_48: u64 = (1 << 48) - 1;

/// One record.
pub enum Record<'shape, 'bytes> {
    /// A superblock was executed.
    Path(Path<'shape, 'bytes>),
    /// From here on this thread runs, with this FS base.
    Thread(u32, u64),
    /// A system call has returned: number, arguments, answer.
    Syscall(u64, [u64; 6], i64),
    /// Accesses of the next superblock's one instruction.
    Accesses(Cursor<'bytes>),
}

impl Decoder {
    /// Expands whole records into events.
    pub fn events(&mut self, bytes: &[u8], mut each: impl FnMut(Event)) -> Result<(), Malformed> {
        let (mut fs, mut explicit) = (self.fs, Vec::new());
        let mut broken = false;
        self.records(bytes, |record| match record {
            Record::Thread(thread, base) => {
                fs = base;
                each(Event::Thread(thread));
            }
            Record::Syscall(number, arguments, answer) => {
                each(Event::Syscall { number, arguments, answer });
            }
            Record::Accesses(list) => broken |= read_accesses(list, &mut explicit).is_none(),
            Record::Path(path) => {
                broken |= expand(&path, fs, &mut explicit, &mut each).is_none();
            }
        })?;
        self.fs = fs;
        if broken { Err(Malformed) } else { Ok(()) }
    }

    /// Goes through whole records without expanding them.
    pub fn records(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Record<'_, '_>),
    ) -> Result<(), Malformed> {
        let mut cursor = Cursor::new(bytes);
        while !cursor.is_empty() {
            if let Some(record) = self.one(&mut cursor).ok_or(Malformed)? {
                each(record);
            }
        }
        Ok(())
    }

    fn one<'bytes>(&mut self, cursor: &mut Cursor<'bytes>) -> Option<Option<Record<'_, 'bytes>>> {
        let kind = cursor.u32()?;
        Some(match kind {
            record::THREAD => Some(Record::Thread(cursor.u32()?, cursor.u64()?)),
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
            _ => Self::path(&mut self.shapes, &mut self.exits, kind, cursor)?.map(Record::Path),
        })
    }

    /// Records that are about superblocks: definitions, exits, partial executions.
    fn path<'shape, 'bytes>(
        shapes: &'shape mut Vec<Shape>,
        exits: &mut Vec<(u32, u16)>,
        kind: u32,
        cursor: &mut Cursor<'bytes>,
    ) -> Option<Option<Path<'shape, 'bytes>>> {
        match kind {
            DEFINE => {
                let length = cursor.u32()? as usize;
                let shape = Shape::read(&mut Cursor::new(cursor.take(length)?))?;
                (shape.first_exit as usize == FIRST_EXIT as usize + exits.len()).then_some(())?;
                let number = shapes.len() as u32;
                exits.extend((0..shape.exits.len() as u16).map(|exit| (number, exit)));
                shapes.push(shape);
                Some(None)
            }
            record::FLUSH => {
                exits.clear();
                Some(None)
            }
            record::PARTIAL => {
                let (first_exit, executed) = (cursor.u32()?, cursor.u32()? as u16);
                let (number, _) = *exits.get(first_exit.checked_sub(FIRST_EXIT)? as usize)?;
                let shape = &shapes[number as usize];
                let fields = shape.fields_before.get(executed as usize).copied()?;
                let payload = cursor.take(fields as usize * FIELD)?;
                Some(Some(Path { shape, number, executed, taken: false, payload }))
            }
            _ => {
                let (number, exit) = *exits.get(kind.checked_sub(FIRST_EXIT)? as usize)?;
                let shape = &shapes[number as usize];
                let exit = shape.exits[exit as usize];
                let payload = cursor.take(exit.fields as usize * FIELD)?;
                let (executed, taken) = (exit.executed, exit.taken);
                Some(Some(Path { shape, number, executed, taken, payload }))
            }
        }
    }
}

fn expand(
    path: &Path<'_, '_>,
    fs: u64,
    explicit: &mut Vec<ExplicitAccess>,
    each: &mut impl FnMut(Event),
) -> Option<()> {
    let mut accesses = path.shape.accesses.iter().peekable();
    for index in 0..path.executed {
        let instruction = path.shape.instructions[index as usize];
        let last = index + 1 == path.executed;
        let taken = instruction.kind == KIND_BRANCH && last && path.taken;
        each(Event::Instruction { pc: instruction.pc, kind: instruction.kind, taken });
        while let Some(access) = accesses.next_if(|access| access.index == index) {
            expand_access(access, path.payload, fs, explicit, each)?;
        }
    }
    Some(())
}

fn expand_access(
    access: &Access,
    payload: &[u8],
    fs: u64,
    explicit: &mut Vec<ExplicitAccess>,
    each: &mut impl FnMut(Event),
) -> Option<()> {
    let base = if access.fs { fs } else { 0 };
    let (size, write) = (u32::from(access.size), access.write);
    match access.source {
        Source::Constant(address) => {
            each(Event::Access { address: address.wrapping_add(base), size, write });
        }
        Source::Field { field, offset } => {
            let value = record::field(payload, field as usize)?;
            let address = value.wrapping_add_signed(offset).wrapping_add(base) & MASK_48;
            each(Event::Access { address, size, write });
        }
        Source::Repeat { field } => {
            let get = |index: usize| record::field(payload, field as usize + index);
            let (count, after) = (get(0)?, get(3)?);
            let start = if access.from_source { get(1)? } else { get(2)? };
            let down = get(4)? < get(2)?;
            for step in 0..(count.wrapping_sub(after) & MASK_48) {
                let distance = step * u64::from(size);
                let address =
                    if down { start.wrapping_sub(distance) } else { start.wrapping_add(distance) };
                each(Event::Access { address: (address + base) & MASK_48, size, write });
            }
        }
        Source::Explicit => {
            for (write, address, size) in explicit.drain(..) {
                each(Event::Access { address, size, write });
            }
        }
    }
    Some(())
}
