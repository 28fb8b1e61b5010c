//! What instructions do to bits that nobody wrote, where that can be said bit by bit: the rules of
//! memcheck, as far as they need no values.
//!
//! A mask takes bits away, a shift moves them, a sum carries them upwards and never downwards. So a
//! bit field that was written is not blamed for its neighbours that were not. Which value a
//! conditional move takes is not in the stream: bits count only if they were written in neither.
//! Constants that were put into registers in the same stretch of code are known. Which rule an instruction
//! has, [`builder`] tells.
//!
//! Words are written and tested bit by bit, too, at places that only the run tells (`std::vector<bool>`).
//! Then the bits that matter are taken to be those that were written, unless nothing of a byte was: a byte that
//! was combined with an unknown mask counts as written in part.

mod builder;

use super::Access;
use super::registers::{CARRY, Origin, PARITY, Registers, SIGN, ZERO};
use super::unwritten::Unwritten;
use crate::semantics::parts::general;
use crate::semantics::{Operand, Parts};
use builder::OperationBuilder;
use iced_x86::{Instruction, Mnemonic};

/// A source or the target of an operation of up to eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// Bytes of a general register: its number, the first one, how many.
    Register(u8, u8, u8),
    /// The memory operand of this number.
    Memory(u8),
    /// A constant.
    Constant(u64),
    /// Nothing: comparisons have no target.
    Nowhere,
}

/// What happens to the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    And,
    Or,
    Xor,
    /// Additions, subtractions, products: with `carry`, of the carry flag too.
    Sum {
        carry: bool,
    },
    /// The carry flag, spread out.
    Spread,
    Left(u8),
    Right(u8),
    /// To the right, with copies of the highest bit.
    Signed(u8),
    Rotate(u8),
    /// To either side, by a number that only the run tells.
    Shift,
    /// The highest bit of a narrower operand is copied upwards.
    Extend(u8),
    /// One bit goes to the carry flag.
    Test(u8),
    /// A flag becomes a byte.
    Set(u8),
    /// One of two, as these flags say.
    Choose(u8),
    /// The other way round, byte by byte.
    Swap,
    /// The sum of a base and a scaled index.
    Address(u8),
}

/// An operation on general registers and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scalar {
    kind: Kind,
    to: Where,
    left: Where,
    right: Where,
    bytes: u8,
    /// Flags that it writes.
    flags: u8,
}

/// A source of a vector operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    Register(u8),
    Memory(u8),
}

/// Which half of sixteen bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Low = 0,
    High = 8,
}

/// An operation that works lane by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed {
    /// Bytes of a lane; 0 if bits do not meet at all.
    lane: u8,
    /// Whether lanes of the two are only put beside each other: those of the lower or upper halves.
    interleaves: Option<Half>,
    to: u8,
    bytes: u8,
    left: Lanes,
    right: Lanes,
    /// Whether the rest of the register becomes zero.
    clears: bool,
}

/// What an instruction does to bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitwise(Operation);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Scalar(Scalar),
    Packed(Packed),
}

/// Constants that general registers hold for sure, in one stretch of code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Constants([Option<u64>; 16]);

impl Constants {
    /// An instruction has executed that defines these parts.
    pub fn follow(&mut self, instruction: &Instruction, defines: &Parts) {
        for number in (0..16u8).filter(|number| defines.general_bytes(*number) != 0) {
            self.0[number as usize] = None;
        }
        let moves = instruction.mnemonic() == Mnemonic::Mov && instruction.op_count() == 2;
        if let (true, Ok(value)) = (moves, instruction.try_immediate(1))
            && let Some((number, 0, bytes @ (4 | 8))) = general(instruction.op0_register())
        {
            self.0[number as usize] = Some(value & mask(bytes));
        }
    }
}

/// All bits of so many bytes.
fn mask(bytes: u8) -> u64 {
    if bytes >= 8 { u64::MAX } else { (1 << (bytes * 8)) - 1 }
}

/// A byte of which something was written.
const SOME: u8 = 0xfe;

/// For each byte a value: whether all of it is unwritten.
fn by_byte(bits: u64, value: impl Fn(bool) -> u8) -> u64 {
    u64::from_le_bytes(bits.to_le_bytes().map(|byte| value(byte == 0xff)))
}

/// The lowest bit and all above it: what a carry can reach.
fn upwards(bits: u64) -> u64 {
    bits | bits.wrapping_neg()
}

impl Bitwise {
    /// The rule of an instruction, if it has one.
    #[must_use]
    pub fn of(
        instruction: &Instruction,
        memory: &[Operand],
        constants: &Constants,
    ) -> Option<Self> {
        let drafted = OperationBuilder { instruction, memory, constants };
        let scalar = drafted.scalar().map(Operation::Scalar);
        scalar.or_else(|| drafted.packed().map(Operation::Packed)).map(Self)
    }

    /// Follows the bits through one execution, which made these accesses.
    pub fn apply(
        &self,
        pc: u64,
        accesses: &[Access],
        registers: &mut Registers,
        memory: &mut Unwritten,
    ) {
        match &self.0 {
            Operation::Scalar(scalar) => scalar.apply(pc, accesses, registers, memory),
            Operation::Packed(packed) => packed.apply(pc, accesses, registers, memory),
        }
    }
}

impl Where {
    fn bits(
        self,
        pc: u64,
        accesses: &[Access],
        registers: &Registers,
        memory: &Unwritten,
    ) -> (u64, Option<Origin>) {
        match self {
            Self::Register(number, from, bytes) => {
                let bits = registers.general(number) >> (from * 8) & mask(bytes);
                (bits, (bits != 0).then(|| registers.origin_of_general(number)))
            }
            Self::Memory(slot) => {
                let Access { address, size, .. } = accesses[slot as usize];
                let loaded = memory.load(address, u64::from(size).min(8));
                let mut low = [0; 8];
                low.copy_from_slice(&loaded[..8]);
                let bits = u64::from_le_bytes(low);
                (bits, (bits != 0).then(|| memory.origin(Origin { pc, address, size })))
            }
            Self::Constant(_) | Self::Nowhere => (0, None),
        }
    }
}

impl Scalar {
    fn apply(
        &self,
        pc: u64,
        accesses: &[Access],
        registers: &mut Registers,
        memory: &mut Unwritten,
    ) {
        let (left, from_left) = self.left.bits(pc, accesses, registers, memory);
        let (right, from_right) = self.right.bits(pc, accesses, registers, memory);
        let flags = registers.flags();
        let bits = self.result(left, right, flags) & mask(self.bytes);
        let carried = || (flags != 0).then(|| registers.origin_of_flags());
        let origin = from_left.or(from_right).or_else(carried);
        let flags = self.flags_after(left, right, bits);
        registers.set_flags(self.flags, flags, origin);
        match self.to {
            Where::Register(number, from, bytes) => {
                let kept = match bytes {
                    4 => 0,
                    _ => registers.general(number) & !(mask(bytes) << (from * 8)),
                };
                registers.set_general(number, kept | bits << (from * 8), origin);
            }
            Where::Memory(slot) => {
                let Access { address, size, .. } = accesses[slot as usize];
                memory.store_from(address, &bits.to_le_bytes()[..size.min(8) as usize], origin);
            }
            Where::Constant(_) | Where::Nowhere => {}
        }
    }

    fn result(&self, left: u64, right: u64, flags: u8) -> u64 {
        let (all, width) = (mask(self.bytes), self.bytes * 8);
        let carried = |reads: bool| if reads && flags & CARRY != 0 { all } else { 0 };
        match self.kind {
            Kind::And => match self.right {
                Where::Constant(kept) => left & kept,
                _ if left & right != 0 => left | right,
                _ => by_byte(left | right, |whole| if whole { SOME } else { 0 }),
            },
            Kind::Or => match self.right {
                Where::Constant(set) => left & !set,
                // Two conditions: the one that is known decides, or nobody would ask for the other.
                _ if self.bytes == 1 && left | right == 1 && left & right == 0 => 0,
                _ if left & right != 0 => left | right,
                _ => {
                    (left | right) & by_byte(left | right, |whole| if whole { SOME } else { 0xff })
                }
            },
            Kind::Xor => left | right,
            Kind::Sum { carry } => upwards(left | right) | carried(carry),
            Kind::Spread => carried(true),
            Kind::Left(count) => left << count,
            Kind::Right(count) => left >> count,
            Kind::Signed(count) => (extended(left, width) >> count) as u64,
            Kind::Rotate(0) => left,
            Kind::Rotate(count) => left << count | left >> (width - count),
            Kind::Shift if right == 0 && by_byte(left, u8::from) == 0 => 0,
            Kind::Shift => all,
            Kind::Extend(narrow) => extended(left, narrow * 8) as u64,
            Kind::Test(bit) => left >> bit & 1,
            Kind::Set(read) => u64::from(flags & read != 0),
            Kind::Choose(read) if flags & read != 0 => all,
            Kind::Choose(_) => left & right,
            Kind::Swap => left.swap_bytes() >> (64 - u32::from(width)),
            Kind::Address(scale) => upwards(left | right << scale),
        }
    }

    /// Whether it compares a constant with something that was written from its first byte on, and not to
    /// the end. Compilers compare texts so, whatever stands behind their ends in the room that they have;
    /// then it is what was written that differs. What it is, nobody has told us.
    fn compares_text(&self, left: u64) -> bool {
        let with_constant = self.to == Where::Nowhere && matches!(self.right, Where::Constant(_));
        with_constant && left != 0 && left & 0xff == 0
    }

    /// Which flags hang on bits that nobody wrote.
    fn flags_after(&self, left: u64, right: u64, bits: u64) -> u8 {
        let (all, top) = (u8::MAX, 1u64 << (self.bytes * 8 - 1));
        let result = |carry: bool| {
            let low = if bits & 0xff != 0 { PARITY } else { 0 };
            let sign = if bits & top != 0 { SIGN } else { 0 };
            let zero = if bits != 0 { ZERO } else { 0 };
            low | sign | zero | if carry { CARRY } else { 0 }
        };
        match self.kind {
            Kind::And | Kind::Or | Kind::Xor => result(false),
            Kind::Left(count) if count > 0 => result(left >> (self.bytes * 8 - count) & 1 != 0),
            Kind::Right(count) | Kind::Signed(count) if count > 0 => {
                result(left >> (count - 1) & 1 != 0)
            }
            Kind::Test(_) => result(bits != 0) & CARRY,
            Kind::Shift => result(bits != 0),
            Kind::Sum { .. } if self.compares_text(left) => all & !ZERO,
            Kind::Sum { .. } | Kind::Spread if bits | left | right != 0 => all,
            _ => 0,
        }
    }
}

/// A number of so many bits with its sign.
fn extended(bits: u64, width: u8) -> i64 {
    let unused = 64 - u32::from(width);
    ((bits << unused) as i64) >> unused
}

impl Packed {
    fn apply(
        &self,
        pc: u64,
        accesses: &[Access],
        registers: &mut Registers,
        memory: &mut Unwritten,
    ) {
        let load = |lanes: Lanes| match lanes {
            Lanes::Register(number) => {
                (*registers.vector(number), Some(registers.origin_of_vector(number)))
            }
            Lanes::Memory(slot) => {
                let Access { address, size, .. } = accesses[slot as usize];
                let mut bits = [0; 32];
                let loaded = memory.load(address, u64::from(size).min(32));
                bits.copy_from_slice(&loaded[..32]);
                (bits, Some(memory.origin(Origin { pc, address, size })))
            }
        };
        let (left, from_left) = load(self.left);
        let (right, from_right) = load(self.right);
        let origin = if left[..self.bytes as usize].iter().any(|bits| *bits != 0) {
            from_left
        } else {
            from_right
        };
        let mut bits = if self.clears { [0; 32] } else { *registers.vector(self.to) };
        if let Some(half) = self.interleaves {
            let width = self.lane as usize;
            for (at, to) in bits.iter_mut().enumerate().take(self.bytes as usize) {
                let (piece, byte) = (at % 16 / width, at % width);
                let from = at / 16 * 16 + half as usize + piece / 2 * width + byte;
                *to = if piece % 2 == 0 { left[from] } else { right[from] };
            }
            registers.set_vector(self.to, bits, origin);
            return;
        }
        let both = left.iter().zip(&right).take(self.bytes as usize);
        for (to, (left, right)) in bits.iter_mut().zip(both) {
            *to = left | right;
        }
        if self.lane > 0 {
            for lane in bits[..self.bytes as usize].chunks_mut(self.lane as usize) {
                let any = lane.iter().any(|bits| *bits != 0);
                lane.fill(if any { u8::MAX } else { 0 });
            }
        }
        registers.set_vector(self.to, bits, origin);
    }
}

#[cfg(test)]
mod tests;
