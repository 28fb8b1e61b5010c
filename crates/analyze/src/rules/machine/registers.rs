//! The bits of a thread's registers that hold nothing anyone wrote, and where each was read.

use super::unwritten::WIDEST;
use crate::semantics::{Parts, Side, Span};

/// Where something that nobody wrote was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The instruction that read it.
    pub pc: u64,
    /// Where.
    pub address: u64,
    /// Bytes.
    pub size: u32,
}

/// Vector registers stand behind the general ones, then the flags, then what has no bits of its own.
const VECTORS: usize = 16;
const FLAGS: usize = 32;
const REST: usize = 33;
const KINDS: usize = 34;
/// The flags that instructions compute, in the order of [`Parts`].
const FLAG_PARTS: [Parts; 6] =
    [Parts::CARRY, Parts::PARITY, Parts::AUXILIARY, Parts::ZERO, Parts::SIGN, Parts::OVERFLOW];
/// Bit of the carry flag in [`Registers::flags`].
pub const CARRY: u8 = 1;
/// Of the parity flag.
pub const PARITY: u8 = 2;
/// Of the zero flag.
pub const ZERO: u8 = 8;
/// Of the sign flag.
pub const SIGN: u8 = 16;
/// The number of RSP, which is a position and no data.
const STACK_POINTER: u8 = 4;

/// The registers of one thread.
#[derive(Clone)]
pub struct Registers {
    general: [u64; 16],
    vector: [[u8; 32]; 16],
    flags: u8,
    rest: bool,
    /// Which registers have such bits at all.
    unset: u64,
    origins: [Origin; KINDS],
}

impl Default for Registers {
    fn default() -> Self {
        Self {
            general: [0; 16],
            vector: [[0; 32]; 16],
            flags: 0,
            rest: false,
            unset: 0,
            origins: [Origin::default(); KINDS],
        }
    }
}

/// The registers that a set of parts touches, as a mask for [`Registers::meets`].
#[must_use]
pub fn touched(parts: &Parts) -> u64 {
    let mut mask = 0;
    for number in 0..16u8 {
        mask |= u64::from(parts.general_bytes(number) != 0) << number;
        mask |= u64::from(parts.vector_bytes(number) != 0) << (VECTORS as u8 + number);
    }
    mask |= u64::from(flags_of(parts) != 0) << FLAGS;
    mask | u64::from(parts.meets(&(Parts::X87 | Parts::MXCSR | Parts::OTHER))) << REST
}

/// The flags among some parts.
#[must_use]
pub fn flags_of(parts: &Parts) -> u8 {
    let there = FLAG_PARTS.iter().enumerate().filter(|(_, flag)| parts.meets(flag));
    there.fold(0, |flags, (bit, _)| flags | 1 << bit)
}

/// One bit for each byte of a mask made eight.
fn widened(bytes: u32) -> u64 {
    (0..8).filter(|byte| bytes >> byte & 1 != 0).fold(0, |bits, byte| bits | 0xff << (byte * 8))
}

impl Registers {
    /// Whether every bit of every register was written.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.unset == 0
    }

    /// Whether any of these registers has a bit that nobody wrote.
    #[must_use]
    pub fn meets(&self, touched: u64) -> bool {
        self.unset & touched != 0
    }

    /// Whether any vector register has a bit that nobody wrote.
    #[must_use]
    pub fn has_vectors(&self) -> bool {
        self.meets(0xffff << VECTORS)
    }

    /// Vector registers are now what they were when these were kept.
    pub fn take_vectors(&mut self, kept: &Self) {
        for number in 0..16u8 {
            let origin = kept.origin_of_vector(number);
            self.set_vector(number, *kept.vector(number), Some(origin));
        }
    }

    /// The bits of a general register.
    #[must_use]
    pub fn general(&self, number: u8) -> u64 {
        self.general[number as usize]
    }

    /// The bits of a vector register, byte by byte.
    #[must_use]
    pub fn vector(&self, number: u8) -> &[u8; 32] {
        &self.vector[number as usize]
    }

    /// The flags that hang on something nobody wrote.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// A general register now has these bits, because of what was read there.
    pub fn set_general(&mut self, number: u8, bits: u64, origin: Option<Origin>) {
        if number != STACK_POINTER {
            self.general[number as usize] = bits;
            self.note(number as usize, bits != 0, origin);
        }
    }

    /// A vector register now has these bits.
    pub fn set_vector(&mut self, number: u8, bits: [u8; 32], origin: Option<Origin>) {
        self.vector[number as usize] = bits;
        self.note(VECTORS + number as usize, bits != [0; 32], origin);
    }

    /// Of the flags in `written` those in `bits` hang on something that nobody wrote.
    pub fn set_flags(&mut self, written: u8, bits: u8, origin: Option<Origin>) {
        self.flags = self.flags & !written | bits & written;
        self.note(FLAGS, self.flags != 0, origin.filter(|_| bits & written != 0));
    }

    fn note(&mut self, index: usize, unset: bool, origin: Option<Origin>) {
        self.unset = self.unset & !(1 << index) | u64::from(unset) << index;
        if let (true, Some(origin)) = (unset, origin) {
            self.origins[index] = origin;
        }
    }

    /// Where what is in a general register was read.
    #[must_use]
    pub fn origin_of_general(&self, number: u8) -> Origin {
        self.origins[number as usize]
    }

    /// Where what is in a vector register was read.
    #[must_use]
    pub fn origin_of_vector(&self, number: u8) -> Origin {
        self.origins[VECTORS + number as usize]
    }

    /// Where what the flags hang on was read.
    #[must_use]
    pub fn origin_of_flags(&self) -> Origin {
        self.origins[FLAGS]
    }

    /// Whether any of these parts has a bit that nobody wrote: where that was read.
    #[must_use]
    pub fn used(&self, parts: &Parts) -> Option<Origin> {
        if self.unset == 0 {
            return None;
        }
        for number in 0..16u8 {
            if self.general(number) & widened(parts.general_bytes(number)) != 0 {
                return Some(self.origin_of_general(number));
            }
            let bytes = parts.vector_bytes(number);
            let bits = self.vector(number).iter().enumerate();
            if bytes != 0 && bits.into_iter().any(|(at, bits)| *bits != 0 && bytes >> at & 1 != 0) {
                return Some(self.origin_of_vector(number));
            }
        }
        if self.flags & flags_of(parts) != 0 {
            return Some(self.origin_of_flags());
        }
        let rest = self.rest && parts.meets(&(Parts::X87 | Parts::OTHER));
        rest.then(|| self.origins[REST])
    }

    /// These parts were written, or all of their bits hang on something that nobody wrote.
    pub fn set_parts(&mut self, parts: &Parts, origin: Option<Origin>) {
        let value = if origin.is_some() { u8::MAX } else { 0 };
        for number in 0..16u8 {
            let bytes = widened(parts.general_bytes(number));
            if bytes != 0 {
                let bits = self.general(number) & !bytes | if value == 0 { 0 } else { bytes };
                self.set_general(number, bits, origin);
            }
            let bytes = parts.vector_bytes(number);
            if bytes != 0 {
                let mut bits = *self.vector(number);
                let there = bits.iter_mut().enumerate().filter(|(at, _)| bytes >> at & 1 != 0);
                there.for_each(|(_, bits)| *bits = value);
                self.set_vector(number, bits, origin);
            }
        }
        self.set_flags(flags_of(parts), value, origin);
        if parts.meets(&(Parts::X87 | Parts::OTHER)) {
            self.rest = origin.is_some();
            self.note(REST, self.rest, origin);
        }
    }

    /// The bits of a span of a register.
    #[must_use]
    pub fn load(&self, span: &Span) -> [u8; WIDEST] {
        let mut bits = [0; WIDEST];
        let range = span.from as usize..span.from as usize + span.bytes as usize;
        match span.side {
            Side::General(number) => {
                let all = self.general(number).to_le_bytes();
                bits[..range.len()].copy_from_slice(&all[range]);
            }
            Side::Vector(number) => {
                bits[..range.len()].copy_from_slice(&self.vector(number)[range])
            }
            Side::Memory(_) => {}
        }
        bits
    }

    /// A span of a register now has these bits.
    pub fn store(&mut self, span: &Span, bits: &[u8; WIDEST], origin: Option<Origin>) {
        let range = span.from as usize..span.from as usize + span.bytes as usize;
        match span.side {
            Side::General(number) => {
                let mut all = self.general(number).to_le_bytes();
                all[range.clone()].copy_from_slice(&bits[..range.len()]);
                self.set_general(number, u64::from_le_bytes(all), origin);
            }
            Side::Vector(number) => {
                let mut all = *self.vector(number);
                all[range.clone()].copy_from_slice(&bits[..range.len()]);
                self.set_vector(number, all, origin);
            }
            Side::Memory(_) => {}
        }
    }
}
