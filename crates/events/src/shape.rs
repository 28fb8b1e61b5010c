//! A **shape**: the static facts of one superblock, from which its records are expanded.

use crate::record::Cursor;

/// Where the address of an access comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A constant.
    Constant(u64),
    /// A field of the record plus a constant, modulo 2^48.
    Field {
        /// Which field.
        field: u16,
        /// What to add.
        offset: i64,
    },
    /// A repeated string instruction: five fields from here on tell count before, source before,
    /// destination before, count after and destination or source after.
    Repeat {
        /// First of the five fields.
        field: u16,
    },
    /// In a record of its own, before this one.
    Explicit,
}

/// What an address is relative to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Segment {
    /// Nothing.
    #[default]
    Flat,
    /// The FS base.
    Fs,
    /// The GS base.
    Gs,
}

/// One memory access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which instruction of the superblock.
    pub index: u16,
    /// Whether it writes; else it reads.
    pub write: bool,
    /// What the address is relative to.
    pub segment: Segment,
    /// For a repeated string instruction: whether this side is the source (rsi).
    pub from_source: bool,
    /// For a repeated string instruction: whether counter and addresses have 32 bits.
    pub narrow: bool,
    /// Bytes.
    pub size: u16,
    /// Where the address comes from.
    pub source: Source,
    /// The first field of its value, where that is stored: as many bytes as the access has.
    pub value: Option<u16>,
}

/// What an instruction is to whoever counts or follows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Address.
    pub pc: u64,
    /// Length in bytes.
    pub length: u8,
    /// One of the `KIND_*` constants.
    pub kind: u8,
    /// Its bytes as they were when it was translated; only `length` of them count.
    pub bytes: [u8; MAX_LENGTH],
}

/// No instruction is longer.
pub const MAX_LENGTH: usize = 15;

impl Instruction {
    /// The bytes of the instruction.
    pub fn code(&self) -> &[u8] {
        &self.bytes[..(self.length as usize).min(MAX_LENGTH)]
    }
}

/// Nothing special.
pub const KIND_PLAIN: u8 = 0;
/// A conditional branch.
pub const KIND_BRANCH: u8 = 1;
/// A call.
pub const KIND_CALL: u8 = 2;
/// A return.
pub const KIND_RETURN: u8 = 3;
/// A jump.
pub const KIND_JUMP: u8 = 4;
/// A system call.
pub const KIND_SYSCALL: u8 = 5;

/// How a superblock can be left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Instructions that have executed.
    pub executed: u16,
    /// Fields in the record.
    pub fields: u16,
    /// Whether the last executed instruction is a conditional branch that was taken.
    pub taken: bool,
}

/// The static facts of a superblock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Number of its first exit.
    pub first_exit: u32,
    /// Its instructions in order.
    pub instructions: Vec<Instruction>,
    /// Their accesses in order.
    pub accesses: Vec<Access>,
    /// Its exits.
    pub exits: Vec<Exit>,
    /// Fields that are there before each instruction.
    pub fields_before: Vec<u16>,
}

impl Shape {
    /// The five fields of a repeated string instruction stand behind those before it. Whether the
    /// instruction at `index` is one.
    pub fn repeats(&self, index: u16) -> bool {
        let repeat = |access: &Access| matches!(access.source, Source::Repeat { .. });
        self.accesses.iter().any(|access| access.index == index && repeat(access))
    }

    /// Writes the shape down.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.first_exit.to_le_bytes());
        out.extend((self.instructions.len() as u16).to_le_bytes());
        out.extend((self.accesses.len() as u16).to_le_bytes());
        out.extend((self.exits.len() as u16).to_le_bytes());
        for (instruction, fields) in self.instructions.iter().zip(&self.fields_before) {
            out.extend(instruction.pc.to_le_bytes());
            out.extend([instruction.length, instruction.kind]);
            out.extend(fields.to_le_bytes());
            out.extend(instruction.code());
        }
        for access in &self.accesses {
            write_access(access, out);
        }
        for exit in &self.exits {
            out.extend(exit.executed.to_le_bytes());
            out.extend(exit.fields.to_le_bytes());
            out.push(u8::from(exit.taken));
        }
    }

    /// Reads a shape; `None` if the bytes are not one.
    pub fn read(cursor: &mut Cursor<'_>) -> Option<Self> {
        let mut shape = Self { first_exit: cursor.u32()?, ..Self::default() };
        let (instructions, accesses, exits) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
        for _ in 0..instructions {
            let (pc, length, kind) = (cursor.u64()?, cursor.u8()?, cursor.u8()?);
            shape.fields_before.push(cursor.u16()?);
            let mut bytes = [0; MAX_LENGTH];
            bytes.get_mut(..length as usize)?.copy_from_slice(cursor.take(length as usize)?);
            shape.instructions.push(Instruction { pc, length, kind, bytes });
        }
        for _ in 0..accesses {
            let access = read_access(cursor)?;
            (access.index < instructions).then_some(())?;
            shape.accesses.push(access);
        }
        for _ in 0..exits {
            let (executed, fields) = (cursor.u16()?, cursor.u16()?);
            (executed <= instructions).then_some(())?;
            shape.exits.push(Exit { executed, fields, taken: cursor.u8()? != 0 });
        }
        Some(shape)
    }
}

fn write_access(access: &Access, out: &mut Vec<u8>) {
    out.extend(access.index.to_le_bytes());
    out.extend(access.size.to_le_bytes());
    let bits = u8::from(access.write)
        | u8::from(access.narrow) << 1
        | u8::from(access.from_source) << 2
        | (access.segment as u8) << 3;
    let (kind, field, number) = match access.source {
        Source::Constant(address) => (0, 0, address),
        Source::Field { field, offset } => (1, field, offset as u64),
        Source::Repeat { field } => (2, field, 0),
        Source::Explicit => (3, 0, 0),
    };
    out.extend([bits, kind]);
    out.extend(field.to_le_bytes());
    out.extend(number.to_le_bytes());
    out.extend(access.value.unwrap_or(NO_VALUE).to_le_bytes());
}

/// Stands for no field.
const NO_VALUE: u16 = u16::MAX;

fn read_access(cursor: &mut Cursor<'_>) -> Option<Access> {
    let (index, size, bits) = (cursor.u16()?, cursor.u16()?, cursor.u8()?);
    let (kind, field, number) = (cursor.u8()?, cursor.u16()?, cursor.u64()?);
    let value = Some(cursor.u16()?).filter(|field| *field != NO_VALUE);
    let source = match kind {
        0 => Source::Constant(number),
        1 => Source::Field { field, offset: number as i64 },
        2 => Source::Repeat { field },
        3 => Source::Explicit,
        _ => return None,
    };
    Some(Access {
        index,
        write: bits & 1 != 0,
        narrow: bits & 2 != 0,
        from_source: bits & 4 != 0,
        segment: match bits >> 3 {
            0 => Segment::Flat,
            1 => Segment::Fs,
            2 => Segment::Gs,
            _ => return None,
        },
        size,
        source,
        value,
    })
}
