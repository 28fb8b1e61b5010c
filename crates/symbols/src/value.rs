//! A value of the program: its type, and where its bits are. Nothing is read yet: a value is a
//! description, so that members can be picked out of something that is only partly there, and so
//! that an analysis can ask where a value lives instead of what it is.

use crate::registers::Register;
use crate::types::TypeRef;
use crate::units::EntryId;
use base::Address;
use std::fmt;
use std::sync::Arc;

/// A value at a moment.
#[derive(Clone, Debug)]
pub struct Value {
    /// The module whose debug information the type is from: an index into the program's modules.
    pub module: usize,
    /// Its type.
    pub ty: TypeRef,
    /// Where its bits are.
    pub held: Held,
}

/// Where the bits of a value are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// All in memory, from this address on.
    Memory(Address),
    /// In pieces, lowest bits first.
    Pieces(Vec<Piece>),
}

/// Some bits of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How many.
    pub bits: u64,
    /// Where they are.
    pub home: Home,
    /// How many lower bits of that place belong to something else.
    pub skip: u64,
}

/// A place that bits can be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    /// Memory, from this address on.
    Memory(Address),
    /// A register of a frame.
    Register {
        /// The register.
        register: Register,
        /// The frame, by its index in the stack.
        frame: usize,
    },
    /// Nowhere: the compiler knew the bits.
    Constant(Arc<[u8]>),
    /// Nowhere: the bits are a pointer to an object that was itself optimised away, of which the
    /// value may still be known.
    ImplicitPointer {
        /// The object.
        entry: EntryId,
        /// How far into it the pointer points.
        offset: i64,
        /// The frame that it belongs to.
        frame: Option<usize>,
    },
    /// Nobody knows.
    Lost(Lost),
}

/// Why bits are not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The compiler kept no copy at this point of the program.
    OptimisedOut,
    /// They were in a register that calls further in have overwritten.
    Overwritten(Register),
    /// The memory cannot be read.
    Unreadable(Address),
    /// They are on a stack, and no frame was given or its layout is not known.
    NoFrame,
    /// They are in a thread's own storage, and the thread's is not known.
    NoThread,
    /// The debug information uses something that this crate does not know.
    Unsupported(String),
    /// The debug information is broken.
    Broken(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OptimisedOut => out.write_str("optimised out"),
            Self::Overwritten(register) => {
                write!(out, "was in {register}, which later calls have overwritten")
            }
            Self::Unreadable(address) => write!(out, "memory at {address} cannot be read"),
            Self::NoFrame => out.write_str("its frame is not known"),
            Self::NoThread => out.write_str("the thread's own storage is not known"),
            Self::Unsupported(what) => write!(out, "debug information not understood: {what}"),
            Self::Broken(what) => write!(out, "debug information is broken: {what}"),
        }
    }
}

impl Piece {
    /// Bits that are lost.
    #[must_use]
    pub fn lost(bits: u64, why: Lost) -> Self {
        Self { bits, home: Home::Lost(why), skip: 0 }
    }

    /// Part of these bits.
    pub(crate) fn part(&self, from: u64, bits: u64) -> Self {
        let skip = self.skip.saturating_add(from);
        match &self.home {
            // Whole bytes are better counted in the address.
            Home::Memory(address) => {
                Self { bits, home: Home::Memory(address.offset((skip / 8) as i64)), skip: skip % 8 }
            }
            home => Self { bits, home: home.clone(), skip },
        }
    }
}

impl Held {
    /// Bits that the compiler knew.
    #[must_use]
    pub fn constant(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let bits = bytes.len() as u64 * 8;
        Self::Pieces(vec![Piece { bits, home: Home::Constant(bytes), skip: 0 }])
    }

    /// Bits that are lost.
    #[must_use]
    pub fn lost(bits: u64, why: Lost) -> Self {
        Self::Pieces(vec![Piece::lost(bits, why)])
    }

    /// The `bits` bits from bit `from` on. What lies beyond the end is optimised out.
    #[must_use]
    pub fn part(&self, from: u64, bits: u64) -> Self {
        let pieces = match self {
            Self::Memory(address) if from.is_multiple_of(8) && bits.is_multiple_of(8) => {
                return Self::Memory(address.offset((from / 8) as i64));
            }
            Self::Memory(address) => {
                let all = Piece { bits: u64::MAX, home: Home::Memory(*address), skip: 0 };
                return Self::Pieces(vec![all.part(from, bits)]);
            }
            Self::Pieces(pieces) => pieces,
        };
        let mut parts = Vec::new();
        let (mut from, mut rest) = (from, bits);
        for piece in pieces {
            if rest == 0 {
                break;
            }
            if from >= piece.bits {
                from -= piece.bits;
                continue;
            }
            let take = rest.min(piece.bits - from);
            parts.push(piece.part(from, take));
            rest -= take;
            from = 0;
        }
        if rest > 0 {
            // What is lost as a whole is lost for the same reason beyond its end.
            let why = match &pieces[..] {
                [Piece { home: Home::Lost(why), .. }] => why.clone(),
                _ => Lost::OptimisedOut,
            };
            parts.push(Piece::lost(rest, why));
        }
        match &parts[..] {
            [Piece { home: Home::Memory(address), skip: 0, bits }] if bits.is_multiple_of(8) => {
                Self::Memory(*address)
            }
            _ => Self::Pieces(parts),
        }
    }

    /// The address, if all is in memory at whole bytes.
    #[must_use]
    pub fn address(&self) -> Option<Address> {
        match self {
            Self::Memory(address) => Some(*address),
            Self::Pieces(_) => None,
        }
    }

    /// The first reason why bits are lost, if any are.
    #[must_use]
    pub fn why_lost(&self) -> Option<&Lost> {
        match self {
            Self::Memory(_) => None,
            Self::Pieces(pieces) => pieces.iter().find_map(|piece| match &piece.home {
                Home::Lost(why) => Some(why),
                _ => None,
            }),
        }
    }
}

/// Copies `bits` bits from bit `skip` of `from` to bit `at` of `to`.
pub(crate) fn copy_bits(from: &[u8], skip: u64, to: &mut [u8], at: u64, bits: u64) {
    if skip.is_multiple_of(8) && at.is_multiple_of(8) && bits.is_multiple_of(8) {
        let (skip, at, count) = ((skip / 8) as usize, (at / 8) as usize, (bits / 8) as usize);
        if let (Some(from), Some(to)) = (from.get(skip..skip + count), to.get_mut(at..at + count)) {
            to.copy_from_slice(from);
        }
        return;
    }
    for bit in 0..bits {
        let (source, target) = (skip + bit, at + bit);
        let set = from.get((source / 8) as usize).is_some_and(|byte| byte >> (source % 8) & 1 == 1);
        if set && let Some(byte) = to.get_mut((target / 8) as usize) {
            *byte |= 1 << (target % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_pieces_keep_their_homes() {
        let register = Home::Register { register: Register(0), frame: 0 };
        let held = Held::Pieces(vec![
            Piece { bits: 32, home: register.clone(), skip: 0 },
            Piece { bits: 32, home: Home::Memory(Address(0x100)), skip: 0 },
        ]);
        assert_eq!(held.part(32, 32), Held::Memory(Address(0x100)));
        assert_eq!(held.part(40, 8), Held::Memory(Address(0x101)));
        let expected = Held::Pieces(vec![Piece { bits: 8, home: register, skip: 16 }]);
        assert_eq!(held.part(16, 8), expected);
        assert_eq!(held.part(60, 8).why_lost(), Some(&Lost::OptimisedOut));
    }

    #[test]
    fn bits_are_copied_one_by_one_where_bytes_do_not_fit() {
        let mut to = [0; 2];
        copy_bits(&[0b1011_0100], 2, &mut to, 7, 5);
        assert_eq!(to, [0b1000_0000, 0b0000_0110]);
    }
}
