//! The registers of a stopped thread, some perhaps unknown, and the memory it sees.

use base::Address;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Memory of the program at the moment in question.
pub trait Memory {
    /// Fills `buffer` from `address`; `false` if any of it cannot be read.
    fn read(&self, address: Address, buffer: &mut [u8]) -> bool;

    /// The eight bytes at `address` as a number.
    fn word(&self, address: Address) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
    }
}

/// A register, numbered as DWARF numbers them for x86-64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Register(pub u16);

impl Register {
    /// The frame pointer, by convention.
    pub const RBP: Self = Self(6);
    /// The stack pointer.
    pub const RSP: Self = Self(7);
    /// The instruction pointer (in DWARF's terms, the return address).
    pub const RIP: Self = Self(16);

    const NAMES: [&'static str; 17] = [
        "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15", "rip",
    ];

    /// The register of that name, without a `$`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let general = Self::NAMES.iter().position(|known| *known == name);
        let number = match name {
            "pc" => Some(16),
            "sp" => Some(7),
            "fp" => Some(6),
            _ => general,
        };
        let vector = || name.strip_prefix("xmm")?.parse().ok().filter(|n: &usize| *n < 16);
        number.or_else(|| vector().map(|n| n + 17)).map(|number| Self(number as u16))
    }

    /// Whether this is one of `xmm0` to `xmm15`.
    #[must_use]
    pub fn is_vector(self) -> bool {
        (17..33).contains(&self.0)
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(self) -> u64 {
        if self.is_vector() { 16 } else { 8 }
    }
}

impl fmt::Display for Register {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            number @ 17..33 => write!(out, "xmm{}", number - 17),
            number => match Self::NAMES.get(usize::from(number)) {
                Some(name) => out.write_str(name),
                None => write!(out, "register {number}"),
            },
        }
    }
}

impl fmt::Debug for Register {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The registers of one frame. In frames further out than the innermost, those that the callees
/// may have overwritten are unknown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Registers {
    general: [Option<u64>; 17],
    vectors: Option<Vectors>,
    carried: Carried,
}

type Vectors = std::sync::Arc<[[u8; 16]; 16]>;

/// What the innermost frame has in the registers that are unknown here. Compilers keep values in
/// such registers over calls to functions that they know not to touch them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Carried {
    general: [Option<u64>; 17],
    vectors: Option<Vectors>,
}

impl Registers {
    /// All general registers in the order the processor encodes them (`rax`, `rcx`, `rdx`,
    /// `rbx`, `rsp`, `rbp`, `rsi`, `rdi`, `r8` … `r15`), and the instruction pointer.
    #[must_use]
    pub fn from_encoding_order(general: &[u64; 16], rip: u64) -> Self {
        const ORDER: [usize; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
        let mut registers = Self::default();
        for (value, number) in general.iter().zip(ORDER) {
            registers.general[number] = Some(*value);
        }
        registers.general[16] = Some(rip);
        registers
    }

    /// The same with `xmm0` to `xmm15` known too.
    #[must_use]
    pub fn with_vectors(mut self, vectors: [[u8; 16]; 16]) -> Self {
        self.vectors = Some(std::sync::Arc::new(vectors));
        self
    }

    /// The value of a general register or of `rip`, if known.
    #[must_use]
    pub fn get(&self, register: Register) -> Option<u64> {
        self.general.get(usize::from(register.0)).copied().flatten()
    }

    /// The bytes of any register, if known.
    #[must_use]
    pub fn bytes(&self, register: Register) -> Option<Vec<u8>> {
        if register.is_vector() {
            let vectors = self.vectors.as_ref()?;
            return Some(vectors[usize::from(register.0 - 17)].to_vec());
        }
        self.get(register).map(|value| value.to_le_bytes().to_vec())
    }

    /// The bytes of a register that no callee has touched, if that is known from elsewhere.
    #[must_use]
    pub(crate) fn untouched_bytes(&self, register: Register) -> Option<Vec<u8>> {
        self.bytes(register).or_else(|| {
            let carried = self.carried.clone();
            let Carried { general, vectors } = carried;
            Self { general, vectors, carried: Carried::default() }.bytes(register)
        })
    }

    /// The registers of a caller: all unknown, but for what the callee may not have touched.
    pub(crate) fn of_caller(callee: &Self) -> Self {
        let mut general = callee.carried.general;
        for (carried, known) in general.iter_mut().zip(callee.general) {
            *carried = known.or(*carried);
        }
        let vectors = callee.vectors.clone().or_else(|| callee.carried.vectors.clone());
        let carried = Carried { general, vectors };
        Self { general: [None; 17], vectors: None, carried }
    }

    /// Sets a general register or `rip`; `None` makes it unknown.
    pub fn set(&mut self, register: Register, value: Option<u64>) {
        if let Some(slot) = self.general.get_mut(usize::from(register.0)) {
            *slot = value;
        }
    }

    /// The instruction pointer.
    #[must_use]
    pub fn rip(&self) -> Address {
        Address(self.get(Register::RIP).unwrap_or(0))
    }

    /// The stack pointer.
    #[must_use]
    pub fn rsp(&self) -> Address {
        Address(self.get(Register::RSP).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_go_by_name_whatever_the_order() {
        let general: [u64; 16] = std::array::from_fn(|index| index as u64 + 100);
        let registers = Registers::from_encoding_order(&general, 7);
        for (name, value) in [("rcx", 101), ("rsp", 104), ("rdi", 107), ("r15", 115), ("pc", 7)] {
            let register = Register::named(name).unwrap();
            assert_eq!(registers.get(register), Some(value), "{name}");
        }
        assert_eq!(Register::named("xmm3").unwrap().to_string(), "xmm3");
        assert_eq!(Register::named("xmm16"), None);
    }
}
