//! A **suspicion**: what a screen did not let pass, and what it saw.
//!
//! It is a reason to look, not a finding: whoever it is reported to confirms or drops it by replaying what led
//! there.

use crate::record::Cursor;

/// Which screen stopped something, and what that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// [`Screen::Shadow`](crate::plan::Screen::Shadow): an access touches memory that is painted for it.
    Painted {
        /// The access.
        access: Access,
        /// The shadow of its bytes, all together.
        bits: u8,
    },
    /// [`Screen::Heap`](crate::plan::Screen::Heap): an access touches memory of no live block.
    OutsideBlocks {
        /// The access.
        access: Access,
        /// What is there instead.
        memory: Memory,
    },
    /// [`Screen::Heap`](crate::plan::Screen::Heap) or
    /// [`Screen::Allocations`](crate::plan::Screen::Allocations): an allocator is about to free something
    /// that is not the beginning of a live block of its family, or is asked for an impossible size. The
    /// instruction is the function's first.
    InvalidCall {
        /// The function's first argument.
        argument: u64,
        /// Whether ENTER and BACK records come next for the calls that made, and maybe freed, the block
        /// that the argument means, and for this call. Of other blocks nothing is known any more.
        recounted: bool,
    },
    /// [`Heap::provenance`](crate::plan::Heap::provenance): the instruction makes an address that lies
    /// in another block than the pointer it is made from.
    OutOfObject {
        /// The pointer.
        pointer: u64,
        /// The address.
        address: u64,
    },
    /// [`Screen::Heap`](crate::plan::Screen::Heap): a return went to a place that no call comes back to. The
    /// instruction is the one that it went to.
    Returned {
        /// Where the return address stood.
        slot: u64,
    },
    /// [`Screen::Poison`](crate::plan::Screen::Poison): memory that nobody has written is used.
    Unwritten(Use),
}

/// A memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    /// Whether it writes.
    pub write: bool,
}

/// What memory is that belongs to no live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It was freed.
    Freed,
    /// It lies before or behind a block.
    Beside,
    /// It lies behind the last byte of a block, in the same granule.
    Tail,
}

/// How something unwritten is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is compared.
    Compared,
    /// The kernel is given what is at this address.
    Handed(u64),
    /// A replay in which it held something else differed from the recording.
    Decisive,
}

/// The bytes of a suspicion begin with one of these.
mod tag {
    pub const PAINTED: u8 = 1;
    pub const FREED: u8 = 2;
    pub const BESIDE: u8 = 3;
    pub const TAIL: u8 = 4;
    pub const INVALID_CALL: u8 = 5;
    pub const RECOUNTED_CALL: u8 = 6;
    pub const OUT_OF_OBJECT: u8 = 7;
    pub const COMPARED: u8 = 8;
    pub const HANDED: u8 = 9;
    pub const DECISIVE: u8 = 10;
    pub const RETURNED: u8 = 11;
}

impl Suspicion {
    /// Whether another one is of the same kind, wherever it was met and whatever the numbers are.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Painted { bits, .. }, Self::Painted { bits: others, .. }) => bits == others,
            (Self::OutsideBlocks { memory, .. }, Self::OutsideBlocks { memory: others, .. }) => {
                memory == others
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Writes it down.
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Painted { access, bits } => {
                out.push(tag::PAINTED);
                access.write(out);
                out.push(bits);
            }
            Self::OutsideBlocks { access, memory } => {
                out.push(match memory {
                    Memory::Freed => tag::FREED,
                    Memory::Beside => tag::BESIDE,
                    Memory::Tail => tag::TAIL,
                });
                access.write(out);
            }
            Self::InvalidCall { argument, recounted } => {
                out.push(if recounted { tag::RECOUNTED_CALL } else { tag::INVALID_CALL });
                out.extend(argument.to_le_bytes());
            }
            Self::OutOfObject { pointer, address } => {
                out.push(tag::OUT_OF_OBJECT);
                out.extend(pointer.to_le_bytes());
                out.extend(address.to_le_bytes());
            }
            Self::Returned { slot } => {
                out.push(tag::RETURNED);
                out.extend(slot.to_le_bytes());
            }
            Self::Unwritten(Use::Compared) => out.push(tag::COMPARED),
            Self::Unwritten(Use::Handed(address)) => {
                out.push(tag::HANDED);
                out.extend(address.to_le_bytes());
            }
            Self::Unwritten(Use::Decisive) => out.push(tag::DECISIVE),
        }
    }

    /// Reads one; `None` if the bytes are not one.
    pub fn read(cursor: &mut Cursor<'_>) -> Option<Self> {
        let outside = |memory, cursor: &mut Cursor<'_>| {
            Some(Self::OutsideBlocks { access: Access::read(cursor)?, memory })
        };
        Some(match cursor.u8()? {
            tag::PAINTED => Self::Painted { access: Access::read(cursor)?, bits: cursor.u8()? },
            tag::FREED => outside(Memory::Freed, cursor)?,
            tag::BESIDE => outside(Memory::Beside, cursor)?,
            tag::TAIL => outside(Memory::Tail, cursor)?,
            tag::INVALID_CALL => Self::InvalidCall { argument: cursor.u64()?, recounted: false },
            tag::RECOUNTED_CALL => Self::InvalidCall { argument: cursor.u64()?, recounted: true },
            tag::OUT_OF_OBJECT => {
                Self::OutOfObject { pointer: cursor.u64()?, address: cursor.u64()? }
            }
            tag::RETURNED => Self::Returned { slot: cursor.u64()? },
            tag::COMPARED => Self::Unwritten(Use::Compared),
            tag::HANDED => Self::Unwritten(Use::Handed(cursor.u64()?)),
            tag::DECISIVE => Self::Unwritten(Use::Decisive),
            _ => return None,
        })
    }
}

impl Access {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.address.to_le_bytes());
        out.extend(self.size.to_le_bytes());
        out.push(u8::from(self.write));
    }

    fn read(cursor: &mut Cursor<'_>) -> Option<Self> {
        let (address, size) = (cursor.u64()?, cursor.u32()?);
        Some(Self { address, size, write: cursor.u8()? & 1 != 0 })
    }
}
