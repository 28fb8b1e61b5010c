//! A **condition** of a place, as a debugger sends it: gdb's agent expressions, the bytecode of a stack of 64-bit words.
//!
//! It is asked where the guest is, so that a condition that fails a million times costs no message. It can only look:
//! operations that would write, print or trace are refused, and so are jumps that go on for ever. What cannot be told
//! is an error, and whoever asks stops then: a stop too many is better than one too few.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a condition can look at.
pub trait Sight {
    /// A register, by the number that the client knows it by.
    fn register(&self, number: u16) -> Option<u64>;
    /// Fills a piece of memory. Whether all of it is there.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

/// The processor's numbers of the general registers, in gdb's order.
pub const GENERAL: [usize; 16] = [0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// A register by gdb's number, given all by the processor's: a general one, or the program counter.
pub fn register(number: u16, general: &[u64; 16], pc: u64) -> Option<u64> {
    match usize::from(number) {
        16 => Some(pc),
        number => Some(general[*GENERAL.get(number)?]),
    }
}

/// An expression; it holds where its value is not zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition(pub Vec<u8>);

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The code ends before it says so, or a jump leads out of it.
    Cut,
    /// More is taken from the stack than there is, or put there than fits.
    Stack,
    /// An operation that there is not, or that does more than look.
    Operation(u8),
    /// A number of bits that a word does not have.
    Bits(u8),
    /// A division by zero.
    Zero,
    /// A register that is not known here.
    Register(u16),
    /// Memory that is not there.
    Memory(u64),
    /// It goes on for ever.
    Endless,
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => write!(out, "the expression is cut"),
            Self::Stack => write!(out, "the expression does not fit its stack"),
            Self::Operation(code) => write!(out, "operation {code:#x} is not known here"),
            Self::Bits(bits) => write!(out, "{bits} bits are no part of a word"),
            Self::Zero => write!(out, "division by zero"),
            Self::Register(number) => write!(out, "register {number} is not known here"),
            Self::Memory(address) => write!(out, "there is no memory at {address:#x}"),
            Self::Endless => write!(out, "the expression goes on for ever"),
        }
    }
}

impl std::error::Error for Trouble {}

/// Words on the stack at most.
const DEEPEST: usize = 64;

/// Operations of one evaluation at most.
const MOST: usize = 4096;

impl Condition {
    /// Whether it holds; also where that cannot be told.
    pub fn holds(&self, sight: &impl Sight) -> bool {
        self.value(sight) != Ok(0)
    }

    /// Its value.
    pub fn value(&self, sight: &impl Sight) -> Result<u64, Trouble> {
        let mut machine = Machine { code: &self.0, at: 0, stack: [0; DEEPEST], depth: 0 };
        for _ in 0..MOST {
            let operation = machine.number(1)? as u8;
            if operation == operations::END {
                return machine.pop();
            }
            machine.execute(operation, sight)?;
        }
        Err(Trouble::Endless)
    }
}

/// The numbers of gdb's manual, "Bytecode Descriptions".
pub mod operations {
    #![allow(missing_docs)]
    pub const ADD: u8 = 0x02;
    pub const SUB: u8 = 0x03;
    pub const MUL: u8 = 0x04;
    pub const DIV_SIGNED: u8 = 0x05;
    pub const DIV_UNSIGNED: u8 = 0x06;
    pub const REM_SIGNED: u8 = 0x07;
    pub const REM_UNSIGNED: u8 = 0x08;
    pub const LSH: u8 = 0x09;
    pub const RSH_SIGNED: u8 = 0x0a;
    pub const RSH_UNSIGNED: u8 = 0x0b;
    pub const LOG_NOT: u8 = 0x0e;
    pub const BIT_AND: u8 = 0x0f;
    pub const BIT_OR: u8 = 0x10;
    pub const BIT_XOR: u8 = 0x11;
    pub const BIT_NOT: u8 = 0x12;
    pub const EQUAL: u8 = 0x13;
    pub const LESS_SIGNED: u8 = 0x14;
    pub const LESS_UNSIGNED: u8 = 0x15;
    pub const EXT: u8 = 0x16;
    pub const REF8: u8 = 0x17;
    pub const REF64: u8 = 0x1a;
    pub const IF_GOTO: u8 = 0x20;
    pub const GOTO: u8 = 0x21;
    pub const CONST8: u8 = 0x22;
    pub const CONST64: u8 = 0x25;
    pub const REG: u8 = 0x26;
    pub const END: u8 = 0x27;
    pub const DUP: u8 = 0x28;
    pub const POP: u8 = 0x29;
    pub const ZERO_EXT: u8 = 0x2a;
    pub const SWAP: u8 = 0x2b;
    pub const PICK: u8 = 0x32;
    pub const ROT: u8 = 0x33;
}

struct Machine<'a> {
    code: &'a [u8],
    at: usize,
    stack: [u64; DEEPEST],
    depth: usize,
}

impl Machine<'_> {
    /// A number in the code, big end first.
    fn number(&mut self, bytes: usize) -> Result<u64, Trouble> {
        let part = self.code.get(self.at..self.at + bytes).ok_or(Trouble::Cut)?;
        self.at += bytes;
        Ok(part.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn push(&mut self, value: u64) -> Result<(), Trouble> {
        *self.stack.get_mut(self.depth).ok_or(Trouble::Stack)? = value;
        self.depth += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, Trouble> {
        self.depth = self.depth.checked_sub(1).ok_or(Trouble::Stack)?;
        Ok(self.stack[self.depth])
    }

    /// The word that lies so far below the top.
    fn below(&self, words: usize) -> Result<u64, Trouble> {
        let index = self.depth.checked_sub(words + 1).ok_or(Trouble::Stack)?;
        Ok(self.stack[index])
    }

    fn execute(&mut self, operation: u8, sight: &impl Sight) -> Result<(), Trouble> {
        use operations::*;
        match operation {
            CONST8..=CONST64 => {
                let value = self.number(1 << (operation - CONST8))?;
                self.push(value)
            }
            REG => {
                let number = self.number(2)? as u16;
                self.push(sight.register(number).ok_or(Trouble::Register(number))?)
            }
            REF8..=REF64 => self.read(1 << (operation - REF8), sight),
            EXT | ZERO_EXT => self.extend(operation == EXT),
            IF_GOTO | GOTO => self.jump(operation == GOTO),
            LOG_NOT => self.replace(|top| u64::from(top == 0)),
            BIT_NOT => self.replace(|top| !top),
            POP => self.pop().map(drop),
            DUP => self.push(self.below(0)?),
            PICK => {
                let words = self.number(1)? as usize;
                self.push(self.below(words)?)
            }
            SWAP => {
                let (top, next) = (self.pop()?, self.pop()?);
                self.push(top)?;
                self.push(next)
            }
            ROT => {
                let (c, b, a) = (self.pop()?, self.pop()?, self.pop()?);
                [c, a, b].into_iter().try_for_each(|word| self.push(word))
            }
            _ => {
                let (top, next) = (self.pop()?, self.pop()?);
                self.push(combined(operation, next, top)?)
            }
        }
    }

    fn replace(&mut self, change: impl Fn(u64) -> u64) -> Result<(), Trouble> {
        let top = self.pop()?;
        self.push(change(top))
    }

    fn read(&mut self, size: usize, sight: &impl Sight) -> Result<(), Trouble> {
        let (address, mut bytes) = (self.pop()?, [0; 8]);
        if !sight.read(address, &mut bytes[..size]) {
            return Err(Trouble::Memory(address));
        }
        self.push(u64::from_le_bytes(bytes))
    }

    fn extend(&mut self, signed: bool) -> Result<(), Trouble> {
        let bits = self.number(1)? as u8;
        let over = match bits {
            1..=64 => 64 - u32::from(bits),
            _ => return Err(Trouble::Bits(bits)),
        };
        self.replace(|top| match signed {
            true => ((top << over) as i64 >> over) as u64,
            false => top << over >> over,
        })
    }

    fn jump(&mut self, always: bool) -> Result<(), Trouble> {
        let to = self.number(2)? as usize;
        if always || self.pop()? != 0 {
            self.at = to;
        }
        Ok(())
    }
}

/// What two words make. Numbers wrap around; bits that are shifted out are gone.
fn combined(operation: u8, a: u64, b: u64) -> Result<u64, Trouble> {
    use operations::*;
    let (signed_a, signed_b) = (a as i64, b as i64);
    let far = u32::try_from(b).unwrap_or(u32::MAX);
    if matches!(operation, DIV_SIGNED | DIV_UNSIGNED | REM_SIGNED | REM_UNSIGNED) && b == 0 {
        return Err(Trouble::Zero);
    }
    Ok(match operation {
        ADD => a.wrapping_add(b),
        SUB => a.wrapping_sub(b),
        MUL => a.wrapping_mul(b),
        DIV_SIGNED => signed_a.wrapping_div(signed_b) as u64,
        DIV_UNSIGNED => a / b,
        REM_SIGNED => signed_a.wrapping_rem(signed_b) as u64,
        REM_UNSIGNED => a % b,
        LSH => a.checked_shl(far).unwrap_or(0),
        RSH_SIGNED => (signed_a >> far.min(63)) as u64,
        RSH_UNSIGNED => a.checked_shr(far).unwrap_or(0),
        BIT_AND => a & b,
        BIT_OR => a | b,
        BIT_XOR => a ^ b,
        EQUAL => u64::from(a == b),
        LESS_SIGNED => u64::from(signed_a < signed_b),
        LESS_UNSIGNED => u64::from(a < b),
        _ => return Err(Trouble::Operation(operation)),
    })
}
