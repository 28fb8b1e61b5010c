//! Sets of register parts, as bits.

use iced_x86::Register;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// A set of register parts of one thread.
///
/// Bits 0–63: four parts of each of the 16 general registers (bytes 0, 1, 2–3, 4–7). Bits 64–191:
/// eight lanes of four bytes of each of the 16 vector registers. Then flags and single things.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Parts(pub [u64; 4]);

/// First bit of the vector lanes.
const VECTORS: u32 = 64;
/// First bit of flags and single things.
const SINGLE: u32 = 192;
/// Parts of a general register.
const GENERAL: u32 = 4;
/// Lanes of a vector register.
const LANES: u32 = 8;
/// Number of the stack pointer in the processor's order.
const RSP: u8 = 4;

impl Parts {
    /// No part.
    pub const NONE: Self = Self([0; 4]);
    /// The carry flag.
    pub const CARRY: Self = Self::single(0);
    /// The parity flag.
    pub const PARITY: Self = Self::single(1);
    /// The auxiliary carry flag.
    pub const AUXILIARY: Self = Self::single(2);
    /// The zero flag.
    pub const ZERO: Self = Self::single(3);
    /// The sign flag.
    pub const SIGN: Self = Self::single(4);
    /// The overflow flag.
    pub const OVERFLOW: Self = Self::single(5);
    /// The direction flag.
    pub const DIRECTION: Self = Self::single(6);
    /// The x87 stack with its state words, and MMX.
    pub const X87: Self = Self::single(8);
    /// The control and status of SSE.
    pub const MXCSR: Self = Self::single(9);
    /// What has no part of its own: mask registers, bounds, vectors from 16 on.
    pub const OTHER: Self = Self::single(10);

    const fn single(number: u32) -> Self {
        Self([0, 0, 0, 1 << (SINGLE + number - 192)])
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Whether the two have a part in common.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let [a, b, c, d] = self.0;
        let [e, f, g, h] = other.0;
        (a & e) | (b & f) | (c & g) | (d & h) != 0
    }

    /// What is in this set and not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        *self & !*other
    }

    /// How many parts.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The numbers of the parts.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let words = self.0;
        (0..4u8).flat_map(move |word| {
            let bits = words[usize::from(word)];
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        })
    }

    /// The part with this number.
    #[must_use]
    pub fn numbered(number: u8) -> Self {
        let mut words = [0; 4];
        words[usize::from(number / 64)] = 1 << (number % 64);
        Self(words)
    }

    /// Bytes `from` up to `from + bytes` of general register `number` (the processor's order).
    /// The stack pointer has no parts.
    #[must_use]
    pub fn general(number: u8, from: u8, bytes: u8) -> Self {
        if number == RSP || bytes == 0 {
            return Self::NONE;
        }
        Self([
            u64::from(general_bits(byte_mask(from, bytes))) << (u32::from(number) * GENERAL),
            0,
            0,
            0,
        ])
    }

    /// Bytes of vector register `number`.
    #[must_use]
    pub fn vector(number: u8, from: u8, bytes: u8) -> Self {
        let lanes = u64::from(lane_bits(byte_mask(from, bytes)));
        let at = u32::from(number) * LANES;
        if at < 64 { Self([0, lanes << at, 0, 0]) } else { Self([0, 0, lanes << (at - 64), 0]) }
    }

    /// Which bytes of general register `number` are in the set, as a mask.
    #[must_use]
    pub fn general_bytes(&self, number: u8) -> u32 {
        general_bytes(self.0[0] >> (u32::from(number) * GENERAL))
    }

    /// Which bytes of vector register `number` are in the set, as a mask.
    #[must_use]
    pub fn vector_bytes(&self, number: u8) -> u32 {
        let at = u32::from(number) * LANES;
        let word = if at < 64 { self.0[1] >> at } else { self.0[2] >> (at - 64) };
        (0..LANES)
            .filter(|lane| word >> lane & 1 == 1)
            .fold(0, |mask, lane| mask | 0xf << (lane * 4))
    }

    /// The parts that hold these bytes of a general register.
    #[must_use]
    pub fn of_general_bytes(number: u8, mask: u32) -> Self {
        if number == RSP {
            return Self::NONE;
        }
        Self([u64::from(general_bits(mask)) << (u32::from(number) * GENERAL), 0, 0, 0])
    }

    /// The lanes that hold these bytes of a vector register.
    #[must_use]
    pub fn of_vector_bytes(number: u8, mask: u32) -> Self {
        let lanes = u64::from(lane_bits(mask));
        let at = u32::from(number) * LANES;
        if at < 64 { Self([0, lanes << at, 0, 0]) } else { Self([0, 0, lanes << (at - 64), 0]) }
    }

    /// What a register name covers.
    #[must_use]
    pub fn of(register: Register) -> Self {
        if let Some((number, from, bytes)) = general(register) {
            return Self::general(number, from, bytes);
        }
        if let Some((number, bytes)) = vector(register) {
            return Self::vector(number, 0, bytes);
        }
        if register.is_mm() || register.is_st() {
            return Self::X87;
        }
        let ignored = register.is_segment_register()
            || matches!(register, Register::None | Register::RIP | Register::EIP)
            || general(register.full_register()).is_some();
        if ignored { Self::NONE } else { Self::OTHER }
    }

    /// The flags of iced-x86's bits.
    #[must_use]
    pub fn flags(bits: u32) -> Self {
        use iced_x86::RflagsBits as B;
        let table = [
            (B::CF, Self::CARRY),
            (B::PF, Self::PARITY),
            (B::AF, Self::AUXILIARY),
            (B::ZF, Self::ZERO),
            (B::SF, Self::SIGN),
            (B::OF, Self::OVERFLOW),
            (B::DF, Self::DIRECTION),
            (B::C0 | B::C1 | B::C2 | B::C3, Self::X87),
        ];
        table
            .iter()
            .filter(|(bit, _)| bits & bit != 0)
            .fold(Self::NONE, |all, (_, part)| all | *part)
    }

    /// A name for a reader: the register of the first part.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        const GENERAL_NAMES: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15",
        ];
        let first = u32::from(self.iter().next()?);
        Some(match first {
            0..VECTORS => GENERAL_NAMES[(first / GENERAL) as usize].into(),
            VECTORS..SINGLE => format!("xmm{}", (first - VECTORS) / LANES),
            200 => "x87".into(),
            201 => "mxcsr".into(),
            202 => "another register".into(),
            _ => "flags".into(),
        })
    }
}

fn byte_mask(from: u8, bytes: u8) -> u32 {
    (((1u64 << bytes) - 1) << from) as u32
}

/// The bytes of a general register that its four parts cover.
#[must_use]
#[inline]
pub fn general_bytes(parts: u64) -> u32 {
    const BYTES: [u32; 16] = {
        let mut table = [0; 16];
        let mut bits = 0;
        while bits < 16 {
            let of = [0x01, 0x02, 0x0c, 0xf0];
            let mut part = 0;
            while part < 4 {
                if bits >> part & 1 == 1 {
                    table[bits] |= of[part];
                }
                part += 1;
            }
            bits += 1;
        }
        table
    };
    BYTES[(parts & 0xf) as usize]
}

/// The parts of a general register that cover some of its bytes.
#[must_use]
#[inline]
pub fn general_bits(mask: u32) -> u32 {
    (mask & 1) | (mask & 2) | u32::from(mask & 0x0c != 0) << 2 | u32::from(mask & 0xf0 != 0) << 3
}

fn lane_bits(mask: u32) -> u32 {
    (0..LANES).filter(|lane| mask >> (lane * 4) & 0xf != 0).fold(0, |bits, lane| bits | 1 << lane)
}

/// Number, first byte and bytes of a general register, by any of its names.
#[must_use]
pub fn general(register: Register) -> Option<(u8, u8, u8)> {
    let number = register.full_register();
    if !number.is_gpr64() {
        return None;
    }
    let number = number.number() as u8;
    let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
    Some((number, u8::from(high), register.size() as u8))
}

/// Number and bytes of one of the first 16 vector registers.
#[must_use]
pub fn vector(register: Register) -> Option<(u8, u8)> {
    let number = register.number();
    (register.is_vector_register() && number < 16 && register.size() <= 32)
        .then(|| (number as u8, register.size() as u8))
}

impl BitOr for Parts {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }
}

impl BitOrAssign for Parts {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl BitAnd for Parts {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
}

impl Not for Parts {
    type Output = Self;
    fn not(self) -> Self {
        Self(self.0.map(|word| !word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_register_overlap_as_the_processor_has_it() {
        let of = Parts::of;
        assert!(!of(Register::AL).meets(&of(Register::AH)));
        assert!(of(Register::AX).meets(&of(Register::AH)));
        assert_eq!(of(Register::RAX).count(), 4);
        assert_eq!(of(Register::EAX).count(), 3);
        assert_eq!(of(Register::RSP), Parts::NONE);
        assert_eq!(of(Register::XMM9).count(), 4);
        assert_eq!(of(Register::YMM9).without(&of(Register::XMM9)).count(), 4);
        assert!(!of(Register::YMM9).meets(&of(Register::YMM8)));
    }

    #[test]
    fn bytes_and_parts_are_two_ways_to_say_it() {
        for number in [0u8, 3, 15] {
            let parts = Parts::of_general_bytes(number, 0x0c);
            assert_eq!(parts.general_bytes(number), 0x0c);
            let lanes = Parts::of_vector_bytes(number, 0xf000_00f0);
            assert_eq!(lanes.vector_bytes(number), 0xf000_00f0);
            assert_eq!(lanes.vector_bytes(number ^ 1), 0);
        }
    }
}
