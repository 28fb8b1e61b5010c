//! The bytes of a stream.
//!
//! A record begins with a number of 32 bits: from [`FIRST_EXIT`] on that of an exit, below it a [`Kind`].
//!
//! ```text
//! exit      u32 number, then the fields of the shape up to that exit, 6 bytes each
//! DEFINE    u32 kind, u32 length, shape
//! PARTIAL   u32 kind, u32 exit number of the shape's first exit, u32 executed, fields up to there,
//!           and if a repeated string instruction comes next, its five, as far as it has come
//! THREAD    u32 kind, u32 thread, u64 FS base, u64 GS base
//! SYSCALL   u32 kind, u64 number, 6 × u64 arguments, i64 answer
//! ACCESS    u32 kind, u32 length, u8 flags (1: write), u64 address, u32 size, … repeated
//! FLUSH     u32 kind: exit numbers start anew
//! CUT       u32 kind, u64 pc, u32 accesses: the instruction that the last ACCESS record is about
//!           did not complete; it made only so many of them
//! SUSPECT   u32 kind, u64 pc, u64 time, u8 tag, then what the screen of that tag saw
//!           ([`crate::suspicion`]); the instruction is about to execute, or if it is a repeated string
//!           instruction, has just done so. Time is in ticks, 0 if none are counted
//! PROBE     u32 kind, u64 pc, u32 registers, u64 each of them by rising number
//! ENTER     u32 kind, u64 function, u64 return address, u64 stack pointer, 6 × u64 arguments
//! BACK      u32 kind, u64 pc, u64 stack pointer, u64 rax: the guest is where a probed function may
//!           return to; whether one has, the ENTER records before tell ([`crate::calls`])
//! PLAN      u32 kind, u32 number: from here on the plan of that number is in force
//! BUFFERS   u32 kind, u32 length, u8 flags (1: written by the kernel, 2: bytes follow), u64 address,
//!           u64 length, bytes, … repeated; about the SYSCALL record that comes next
//! FORK      u32 kind, u32 process: a child of that number has been made, whose own stream goes on
//!           from here; 0: from here on this is the stream of the child (replays become it)
//! HANDLER   u32 kind, u64 pc, u64 stack pointer, u64 frame: a signal handler comes next; where the
//!           thread was, and where the handler's return address stands
//! TOUCH     u32 kind, u64 function, u8 argument, u8 deed, u64 address, u64 length: a function of the C
//!           library has just been entered that will touch these bytes; one record for each range
//! ```
//!
//! Writers and readers stand side by side: [`Entry`] for records of one thing, [`list`] for those that
//! list several, [`crate::shape`] for shapes. ENTER and BACK are also written by translated code, field by
//! field.

mod entry;
pub mod list;

pub use entry::{Bases, Entry, Touch};

/// Numbers below this are kinds, from here on exits.
pub const FIRST_EXIT: u32 = 256;

/// What a record is, if it is not an exit. There is room up to [`FIRST_EXIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A superblock has been translated.
    Define = 1,
    /// A superblock was left in the middle: a fault or a signal.
    Partial = 2,
    /// From here on another thread runs, or the same one with other segment bases.
    Thread = 3,
    /// A system call has returned.
    Syscall = 4,
    /// Accesses of the next instruction that only the engine could work out.
    Access = 5,
    /// Exit numbers start anew.
    Flush = 6,
    /// The instruction of the last [`Kind::Access`] record did not complete.
    Cut = 7,
    /// Something did not pass a screen.
    Suspect = 8,
    /// The instruction at a probed place is about to execute.
    Probe = 9,
    /// A probed function has been called.
    Enter = 10,
    /// The guest is where a probed function may return to.
    Back = 11,
    /// Another plan is in force.
    Plan = 12,
    /// What the next system call read and wrote.
    Buffers = 13,
    /// A child has been made.
    Fork = 14,
    /// A signal handler comes next.
    Handler = 15,
    /// A function of the C library will touch memory.
    Touch = 16,
}

impl Kind {
    /// All of them, by number from 1 on.
    pub const ALL: [Self; 16] = [
        Self::Define,
        Self::Partial,
        Self::Thread,
        Self::Syscall,
        Self::Access,
        Self::Flush,
        Self::Cut,
        Self::Suspect,
        Self::Probe,
        Self::Enter,
        Self::Back,
        Self::Plan,
        Self::Buffers,
        Self::Fork,
        Self::Handler,
        Self::Touch,
    ];

    /// The kind of this number.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get((number as usize).wrapping_sub(1)).copied()
    }

    /// The bytes that a record of this kind begins with.
    #[must_use]
    pub fn bytes(self) -> [u8; 4] {
        (self as u32).to_le_bytes()
    }
}

/// Bytes of a [`Kind::Enter`] record.
pub const ENTER_BYTES: usize = 4 + 9 * 8;
/// Bytes of a [`Kind::Back`] record.
pub const BACK_BYTES: usize = 4 + 3 * 8;
/// Bytes of a field.
pub const FIELD: usize = 6;
/// Fields of a repeated string instruction.
pub const REPEAT_FIELDS: usize = 5;

/// Reads numbers off a byte slice; `None` where it ends.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the start of the slice.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    /// An 8-bit number.
    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// A 16-bit number.
    pub fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// A 32-bit number.
    pub fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    /// A 64-bit number.
    pub fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }
}

/// Reads a 6-byte field of a payload.
#[inline]
pub fn field(payload: &[u8], index: usize) -> Option<u64> {
    let bytes = payload.get(index * FIELD..(index + 1) * FIELD)?;
    let mut wide = [0; 8];
    wide[..FIELD].copy_from_slice(bytes);
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_their_numbers_below_those_of_exits() {
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, Kind::of(kind as u32)), (index + 1, Some(kind)));
            assert!((kind as u32) < FIRST_EXIT);
        }
        assert_eq!((Kind::of(0), Kind::of(17), Kind::of(u32::MAX)), (None, None, None));
    }
}
