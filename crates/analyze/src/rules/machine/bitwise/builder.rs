//! Which rule for bits an instruction has.

use super::{Constants, Half, Kind, Lanes, Packed, Scalar, Where, mask};
use crate::rules::machine::registers::flags_of;
use crate::semantics::parts::{general, vector};
use crate::semantics::{Operand, Parts};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// An instruction whose rule is looked for.
pub(super) struct OperationBuilder<'a> {
    pub(super) instruction: &'a Instruction,
    pub(super) memory: &'a [Operand],
    pub(super) constants: &'a Constants,
}

impl OperationBuilder<'_> {
    fn slot(&self, write: bool) -> Option<u8> {
        self.memory.iter().position(|operand| operand.write == write).map(|slot| slot as u8)
    }

    fn operand(&self, index: u32, write: bool) -> Option<(Where, u8)> {
        let instruction = self.instruction;
        if index >= instruction.op_count() {
            return None;
        }
        match instruction.op_kind(index) {
            OpKind::Register => {
                let (number, from, bytes) = general(instruction.op_register(index))?;
                Some((Where::Register(number, from, bytes), bytes))
            }
            OpKind::Memory => {
                let slot = self.slot(write)?;
                let bytes = self.memory[slot as usize].bytes;
                (bytes <= 8).then_some((Where::Memory(slot), bytes as u8))
            }
            _ => Some((Where::Constant(instruction.try_immediate(index).ok()?), 8)),
        }
    }

    /// A register whose value is known is as good as a constant.
    fn masked(&self, index: u32) -> Option<Where> {
        let (found, _) = self.operand(index, false)?;
        let known = match found {
            Where::Register(number, 0, bytes) => {
                self.constants.0[number as usize].map(|value| value & mask(bytes))
            }
            _ => None,
        };
        Some(known.map_or(found, Where::Constant))
    }

    pub(super) fn scalar(&self) -> Option<Scalar> {
        use Mnemonic as M;
        let instruction = self.instruction;
        let same = instruction.op_count() >= 2
            && instruction.op_kind(0) == OpKind::Register
            && instruction.op_kind(1) == OpKind::Register
            && instruction.op0_register() == instruction.op1_register();
        let sum = Kind::Sum { carry: false };
        match instruction.mnemonic() {
            M::And => self.two(Kind::And, true),
            M::Test => self.two(Kind::And, false),
            M::Or => self.two(Kind::Or, true),
            M::Xor | M::Sub | M::Cmp if same => None,
            M::Xor => self.two(Kind::Xor, true),
            M::Sbb if same => self.two(Kind::Spread, true),
            M::Adc | M::Sbb => self.two(Kind::Sum { carry: true }, true),
            M::Cmp => self.two(sum, false),
            // Compilers double by adding: no carry comes from below.
            M::Add if same => self.one(Kind::Left(1)),
            M::Add | M::Sub => self.two(sum, true),
            M::Inc | M::Dec | M::Neg => self.one(sum),
            M::Not => self.one(Kind::Xor),
            M::Bswap => self.one(Kind::Swap),
            M::Imul if instruction.op_count() == 2 => self.two(sum, true),
            M::Imul if instruction.op_count() == 3 => {
                let (left, _) = self.operand(1, false)?;
                Some(Scalar { left, ..self.one(sum)? })
            }
            M::Shl | M::Sal | M::Shr | M::Sar if self.is_by_register(1) => self.shift((0, 1)),
            M::Shlx | M::Shrx | M::Sarx => self.shift((1, 2)),
            M::Shl | M::Sal => self.one(Kind::Left(self.count()?)),
            M::Shr => self.one(Kind::Right(self.count()?)),
            M::Sar => self.one(Kind::Signed(self.count()?)),
            M::Rol => self.one(Kind::Rotate(self.count()?)),
            M::Ror => {
                let (_, bytes) = self.operand(0, false)?;
                let bits = bytes * 8;
                self.one(Kind::Rotate((bits - self.count()? % bits) % bits))
            }
            M::Bt if self.is_by_register(1) => {
                let moved = self.shift((0, 1))?;
                Some(Scalar { to: Where::Nowhere, ..moved })
            }
            M::Bt => {
                let (left, bytes) = self.operand(0, false)?;
                let (Where::Constant(bit), _) = self.operand(1, false)? else { return None };
                let bit = (bit % (u64::from(bytes) * 8)) as u8;
                Some(Scalar { left, to: Where::Nowhere, ..self.plain(Kind::Test(bit), bytes) })
            }
            // A bit that is set or cleared is written; the others stay as they are.
            M::Bts => self.one_bit(Kind::Or, |bit| bit),
            M::Btr => self.one_bit(Kind::And, |bit| !bit),
            M::Btc => self.one_bit(Kind::Xor, |bit| bit),
            M::Andn => {
                let ((left, _), (right, _)) = (self.operand(1, false)?, self.operand(2, false)?);
                let (to, bytes) = self.operand(0, true)?;
                Some(Scalar { to, left, right, ..self.plain(Kind::And, bytes) })
            }
            M::Movsx | M::Movsxd => {
                let ((to, bytes), (left, narrow)) =
                    (self.operand(0, true)?, self.operand(1, false)?);
                Some(Scalar { to, left, ..self.plain(Kind::Extend(narrow), bytes) })
            }
            M::Cbw => self.widened(0, 2, 1),
            M::Cwde => self.widened(0, 4, 2),
            M::Cdqe => self.widened(0, 8, 4),
            M::Lea => self.address(),
            _ if instruction.is_jcc_short_or_near() => None,
            _ => self.conditional(),
        }
    }

    fn plain(&self, kind: Kind, bytes: u8) -> Scalar {
        let instruction = self.instruction;
        let written = instruction.rflags_modified();
        let none = Where::Constant(0);
        let flags = flags_of(&Parts::flags(written));
        Scalar { kind, to: Where::Nowhere, left: none, right: none, bytes, flags }
    }

    fn one(&self, kind: Kind) -> Option<Scalar> {
        let ((to, bytes), (left, _)) = (self.operand(0, true)?, self.operand(0, false)?);
        Some(Scalar { to, left, ..self.plain(kind, bytes) })
    }

    fn two(&self, kind: Kind, stores: bool) -> Option<Scalar> {
        let (left, bytes) = self.operand(0, false)?;
        let to = if stores { self.operand(0, true)?.0 } else { Where::Nowhere };
        let right = self.masked(1)?;
        // Of a comparison no more is known than which bits meet.
        let commutes = !stores || matches!(kind, Kind::And | Kind::Or);
        let (left, right) = match self.masked(0)? {
            mask @ Where::Constant(_) if commutes => (right, mask),
            _ => (left, right),
        };
        Some(Scalar { to, left, right, ..self.plain(kind, bytes) })
    }

    fn is_by_register(&self, index: u32) -> bool {
        index < self.instruction.op_count() && self.instruction.op_kind(index) == OpKind::Register
    }

    /// A shift of one operand by the number in another.
    fn shift(&self, (what, by): (u32, u32)) -> Option<Scalar> {
        let (to, bytes) = self.operand(0, true).or_else(|| self.operand(0, false))?;
        let ((left, _), (right, _)) = (self.operand(what, false)?, self.operand(by, false)?);
        Some(Scalar { to, left, right, ..self.plain(Kind::Shift, bytes) })
    }

    fn one_bit(&self, kind: Kind, mask: impl Fn(u64) -> u64) -> Option<Scalar> {
        let (Where::Constant(bit), _) = self.operand(1, false)? else { return None };
        let all = self.one(kind)?;
        Some(Scalar {
            right: Where::Constant(mask(1 << (bit % (u64::from(all.bytes) * 8)))),
            ..all
        })
    }

    fn count(&self) -> Option<u8> {
        let (_, bytes) = self.operand(0, false)?;
        let count = match self.instruction.op_count() {
            1 => 1,
            _ => self.instruction.try_immediate(1).ok()? as u8,
        };
        let count = count & if bytes == 8 { 63 } else { 31 };
        // Narrow operands can be shifted out altogether.
        (count < bytes * 8).then_some(count)
    }

    fn widened(&self, number: u8, bytes: u8, narrow: u8) -> Option<Scalar> {
        let to = Where::Register(number, 0, bytes);
        let left = Where::Register(number, 0, narrow);
        Some(Scalar { to, left, ..self.plain(Kind::Extend(narrow), bytes) })
    }

    fn address(&self) -> Option<Scalar> {
        let instruction = self.instruction;
        let (to, bytes) = self.operand(0, true)?;
        let part = |register: Register| match general(register) {
            // The stack pointer is a position.
            Some((4, ..)) => Some(Where::Constant(0)),
            Some((number, from, bytes)) => Some(Where::Register(number, from, bytes)),
            None if matches!(register, Register::None | Register::RIP | Register::EIP) => {
                Some(Where::Constant(0))
            }
            None => None,
        };
        let (left, right) = (part(instruction.memory_base())?, part(instruction.memory_index())?);
        let scale = instruction.memory_index_scale().trailing_zeros() as u8;
        if left == right && scale == 0 {
            return Some(Scalar { to, left, ..self.plain(Kind::Left(1), bytes) });
        }
        Some(Scalar { to, left, right, ..self.plain(Kind::Address(scale), bytes) })
    }

    fn conditional(&self) -> Option<Scalar> {
        let instruction = self.instruction;
        let read = flags_of(&Parts::flags(instruction.rflags_read()));
        if instruction.condition_code() == iced_x86::ConditionCode::None || read == 0 {
            return None;
        }
        match instruction.op_count() {
            1 => Some(Scalar { to: self.operand(0, true)?.0, ..self.plain(Kind::Set(read), 1) }),
            2 => self.two(Kind::Choose(read), true),
            _ => None,
        }
    }

    pub(super) fn packed(&self) -> Option<Packed> {
        let instruction = self.instruction;
        let name = format!("{:?}", instruction.mnemonic()).to_ascii_lowercase();
        let vex = name.starts_with('v');
        let plain = name.strip_prefix('v').unwrap_or(&name);
        let (lane, interleaves) = match interleaved(plain) {
            Some((lane, half)) => (lane, Some(half)),
            None => (lane(plain)?, None),
        };
        let (left, right) = if instruction.op_count() == 3 { (1, 2) } else { (0, 1) };
        let source = |index: u32| match instruction.op_kind(index) {
            OpKind::Register => {
                vector(instruction.op_register(index)).map(|(n, _)| Lanes::Register(n))
            }
            OpKind::Memory => self.slot(false).map(Lanes::Memory),
            _ => None,
        };
        let (left, right) = (source(left)?, source(right)?);
        // What does not hang on its operands at all has its own rule.
        let hangs = left != right || interleaves.is_some() || lane == 0 && !name.contains("xor");
        hangs.then_some(())?;
        let (to, bytes) = vector(instruction.op0_register())?;
        Some(Packed { lane, interleaves, to, bytes, left, right, clears: vex })
    }
}

/// Bytes of the lanes that an instruction puts beside each other, and of which halves.
fn interleaved(name: &str) -> Option<(u8, Half)> {
    match name {
        "punpcklbw" => Some((1, Half::Low)),
        "punpcklwd" => Some((2, Half::Low)),
        "punpckldq" | "unpcklps" => Some((4, Half::Low)),
        "punpckhbw" => Some((1, Half::High)),
        "punpckhwd" => Some((2, Half::High)),
        "punpckhdq" | "unpckhps" => Some((4, Half::High)),
        _ => None,
    }
}

/// Bytes of the lanes that do not meet in an instruction, by its name without a leading `v`.
fn lane(name: &str) -> Option<u8> {
    const BITS: [&str; 12] = [
        "pand", "pandn", "por", "pxor", "andps", "andpd", "andnps", "andnpd", "orps", "orpd",
        "xorps", "xorpd",
    ];
    if BITS.contains(&name) {
        return Some(0);
    }
    let integer = ["padd", "psub", "pcmpeq", "pcmpgt", "pminu", "pmins", "pmaxu", "pmaxs", "pavg"];
    let rest = integer.iter().find_map(|start| name.strip_prefix(start))?;
    match rest {
        "b" => Some(1),
        "w" => Some(2),
        "d" => Some(4),
        "q" => Some(8),
        _ => None,
    }
}
