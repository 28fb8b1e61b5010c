//! The records of a chunk. A chunk can be read without those before it:
//!
//! ```text
//! exit      u32 number + FIRST_EXIT, then the fields of the stream's record
//! THREAD    u32 kind, u32 thread, u64 FS base, u64 GS base (also at the head of every chunk)
//! READ      u32 kind, u32 count, (u64 address, u64 bytes) …: what the next system call reads
//! SYSCALL   u32 kind, u64 number, 6 × u64 arguments, i64 answer
//! WROTE     u32 kind, u32 count, (u64 address, u64 bytes) …: what the last system call wrote
//! ACCESS    u32 kind, u32 count, (u8 write, u64 address, u32 bytes) …: of the next exit's
//!           instruction
//! UNWOUND   u32 kind, u32 count, u32 where the frame was left that runs now, u64 …: frames that were
//!           left without returning, innermost first; 0 is one of a handler
//! HANDLER   u32 kind: a signal handler is entered
//! RESUMED   u32 kind: a signal handler returned to what it interrupted
//! ```

use crate::dependence::block::Extent;
use base::StepCount;
use base::Tick;
use events::decode::Bases;
use events::record::{self, Cursor};
use events::shape::{Access, Segment, Source};

pub(super) const FIRST_EXIT: u32 = 16;
pub(super) const THREAD: u32 = 1;
pub(super) const SYSCALL: u32 = 2;
pub(super) const WROTE: u32 = 3;
pub(super) const ACCESS: u32 = 4;
pub(super) const UNWOUND: u32 = 5;
pub(super) const HANDLER: u32 = 6;
pub(super) const RESUMED: u32 = 7;
pub(super) const READ: u32 = 8;

const MASK_48: u64 = (1 << 48) - 1;

/// Something in the window.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A superblock was executed.
    Path {
        /// By this exit.
        exit: u32,
        /// Its fields.
        payload: &'a [u8],
        /// Accesses that stood in a record of their own: 13 bytes each.
        explicit: &'a [u8],
    },
    /// A system call has returned.
    Syscall {
        /// Its number.
        number: u64,
        /// Its arguments.
        arguments: [u64; 6],
        /// Its answer.
        answer: i64,
    },
    /// The system call that comes next read these ranges, 16 bytes each.
    Read(&'a [u8]),
    /// The last system call wrote these ranges, 16 bytes each.
    Wrote(&'a [u8]),
    /// Frames were left without returning.
    Unwound {
        /// By their slots, innermost first: 8 bytes each, 0 for that of a handler.
        slots: &'a [u8],
        /// How.
        by: Unwinding,
    },
    /// A signal handler is entered.
    Handler,
    /// A signal handler returned to what it interrupted.
    Resumed,
}

/// How frames came to be left without returning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwinding {
    /// By the jump just before, into the frame that made this call.
    Call(u32),
    /// By the jump just before, into the frame that a signal had interrupted.
    Signal,
    /// Some time before.
    Unnoticed,
}

impl Unwinding {
    const SIGNAL: u32 = u32::MAX;
    const UNNOTICED: u32 = u32::MAX - 1;

    pub(super) fn number(self) -> u32 {
        match self {
            Self::Call(instruction) => instruction,
            Self::Signal => Self::SIGNAL,
            Self::Unnoticed => Self::UNNOTICED,
        }
    }

    fn numbered(number: u32) -> Self {
        match number {
            Self::SIGNAL => Self::Signal,
            Self::UNNOTICED => Self::Unnoticed,
            instruction => Self::Call(instruction),
        }
    }
}

/// Ranges of memory: address, bytes.
pub fn ranges(bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    bytes.chunks_exact(16).map(|range| {
        let number = |from: usize| {
            u64::from_le_bytes(range[from..from + 8].try_into().expect("eight bytes"))
        };
        (number(0), number(8))
    })
}

/// The slots of frames that were left, innermost first.
pub fn slots(bytes: &[u8]) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
    let number = |slot: &[u8]| u64::from_le_bytes(slot.try_into().expect("eight bytes"));
    bytes.chunks_exact(8).map(number)
}

impl<'a> Item<'a> {
    pub(super) fn with(self, list: &'a [u8]) -> Self {
        match self {
            Self::Path { exit, payload, .. } => Self::Path { exit, payload, explicit: list },
            other => other,
        }
    }
}

/// A record.
pub(super) enum Raw<'a> {
    Thread(u32, Bases),
    Access(&'a [u8]),
    Item(Item<'a>),
}

/// When and where an item happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct When {
    /// The thread.
    pub thread: u32,
    /// Its segments.
    pub bases: Bases,
    /// Instructions executed before it.
    pub moment: StepCount,
    /// Ticks before it.
    pub tick: Tick,
}

/// Reads the next record.
pub(super) fn read<'a>(exits: &[Extent], cursor: &mut Cursor<'a>) -> Option<Raw<'a>> {
    let kind = cursor.u32()?;
    Some(match kind {
        THREAD => {
            let thread = cursor.u32()?;
            Raw::Thread(thread, Bases { fs: cursor.u64()?, gs: cursor.u64()? })
        }
        SYSCALL => {
            let number = cursor.u64()?;
            let mut arguments = [0; 6];
            for argument in &mut arguments {
                *argument = cursor.u64()?;
            }
            Raw::Item(Item::Syscall { number, arguments, answer: cursor.u64()? as i64 })
        }
        WROTE => {
            let count = cursor.u32()? as usize;
            Raw::Item(Item::Wrote(cursor.take(count * 16)?))
        }
        READ => {
            let count = cursor.u32()? as usize;
            Raw::Item(Item::Read(cursor.take(count * 16)?))
        }
        ACCESS => {
            let count = cursor.u32()? as usize;
            Raw::Access(cursor.take(count * 13)?)
        }
        UNWOUND => {
            let (count, by) = (cursor.u32()? as usize, Unwinding::numbered(cursor.u32()?));
            Raw::Item(Item::Unwound { slots: cursor.take(count * 8)?, by })
        }
        HANDLER => Raw::Item(Item::Handler),
        RESUMED => Raw::Item(Item::Resumed),
        _ => {
            let exit = kind - FIRST_EXIT;
            let payload = cursor.take(exits.get(exit as usize)?.payload.into())?;
            Raw::Item(Item::Path { exit, payload, explicit: &[] })
        }
    })
}

/// How long the record is that begins here.
pub(super) fn length(exits: &[Extent], bytes: &[u8], kind: u32) -> usize {
    let count = |each: usize| {
        let count = bytes.get(4..8).and_then(|bytes| bytes.try_into().ok());
        8 + each * count.map_or(0, u32::from_le_bytes) as usize
    };
    match kind {
        THREAD => 24,
        SYSCALL => 68,
        WROTE | READ => count(16),
        ACCESS => count(13),
        UNWOUND => 4 + count(8),
        HANDLER | RESUMED => 4,
        _ => 4 + usize::from(exits[(kind - FIRST_EXIT) as usize].payload),
    }
}

/// The address of an access that has one of its own, from the fields of a record.
#[must_use]
#[inline]
pub fn address(access: &Access, payload: &[u8], bases: Bases) -> Option<u64> {
    let base = match access.segment {
        Segment::Flat => 0,
        Segment::Fs => bases.fs,
        Segment::Gs => bases.gs,
    };
    match access.source {
        Source::Constant(address) => Some(address.wrapping_add(base)),
        Source::Field { field, offset } => {
            let value = record::field(payload, field.into())?;
            Some(value.wrapping_add_signed(offset).wrapping_add(base) & MASK_48)
        }
        Source::Repeat { .. } | Source::Explicit => None,
    }
}
