//! The instruction that a signal stopped: its text, the registers it uses and the memory it names.

use crate::assembly;
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};
use serde::Serialize;

/// Names of the general registers, in the order of the processor.
pub const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// An instruction and what it was about to do.
#[derive(Serialize)]
pub struct Stopped {
    /// Its text.
    pub text: String,
    /// The registers it reads, with their values.
    pub registers: Vec<(String, u64)>,
    /// The memory it names.
    pub accesses: Vec<Access>,
    #[serde(skip)]
    instruction: Instruction,
}

/// Memory that an instruction names.
#[derive(Clone, Copy, Serialize)]
pub struct Access {
    /// Where.
    pub address: u64,
    /// How many bytes.
    pub size: usize,
    /// Whether it is changed.
    pub write: bool,
}

/// What a divide error was about.
#[derive(Debug, PartialEq, Eq)]
pub enum Division {
    /// The divisor is zero.
    ByZero,
    /// The quotient is too large for its register.
    TooLarge,
    /// The divisor is not known.
    Unknown,
}

impl Stopped {
    /// Decodes the instruction at `pc`.
    pub fn decode(code: &[u8], pc: u64, general: &[u64; 16], fs: u64) -> Option<Self> {
        let instruction = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&instruction);
        let value = |register| register_value(register, general, fs);
        let mut registers: Vec<(String, u64)> = Vec::new();
        for used in info.used_registers() {
            let (register, read) = (used.register().full_register(), reads(used.access()));
            let known = registers.iter().any(|(name, _)| *name == name_of(register));
            if read && register.is_gpr64() && !known {
                registers.push((name_of(register), value(register).unwrap_or(0)));
            }
        }
        let accesses = info.used_memory().iter().filter_map(|memory| {
            let address = memory.virtual_address(0, |register, _, _| value(register))?;
            let size = memory.memory_size().size();
            Some(Access { address, size, write: writes(memory.access()) })
        });
        let accesses = accesses.collect();
        Some(Self { text: assembly::text(&instruction), registers, accesses, instruction })
    }

    /// Where an indirect branch through a register goes.
    pub fn branches_to(&self) -> Option<u64> {
        let indirect =
            self.instruction.is_call_near_indirect() || self.instruction.is_jmp_near_indirect();
        let register = self.instruction.op0_register();
        let through = |(name, _): &&(String, u64)| *name == name_of(register);
        let held = self.registers.iter().find(through).map(|(_, value)| *value);
        held.filter(|_| indirect && register.is_gpr64())
    }

    /// The access that a fault at `address` belongs to.
    pub fn access_at(&self, address: u64) -> Option<Access> {
        let hit = |access: &&Access| address.wrapping_sub(access.address) < access.size as u64;
        self.accesses.iter().find(hit).copied()
    }

    /// An access whose address no pointer can have.
    pub fn not_canonical(&self) -> Option<Access> {
        let canonical = |address: u64| (address as i64) << 16 >> 16 == address as i64;
        self.accesses.iter().find(|access| !canonical(access.address)).copied()
    }

    /// An access that is not aligned to its own size, as aligned vector moves need it.
    pub fn misaligned(&self) -> Option<Access> {
        let odd = |access: &&Access| {
            access.size >= 16
                && access.size.is_power_of_two()
                && !access.address.is_multiple_of(access.size as u64)
        };
        self.accesses.iter().find(odd).copied()
    }

    /// Whether it returns from a call.
    pub fn returns(&self) -> bool {
        self.instruction.mnemonic() == Mnemonic::Ret
    }

    /// Whether only the kernel may execute it.
    pub fn is_privileged(&self) -> bool {
        let io = matches!(
            self.instruction.mnemonic(),
            Mnemonic::In | Mnemonic::Out | Mnemonic::Cli | Mnemonic::Sti
        );
        io || self.instruction.is_privileged()
    }

    /// Whether it does nothing but raise SIGILL.
    pub fn is_undefined(&self) -> bool {
        matches!(self.instruction.mnemonic(), Mnemonic::Ud0 | Mnemonic::Ud1 | Mnemonic::Ud2)
    }

    /// Why a division failed; `memory` reads the operand if it is there.
    pub fn division(&self, memory: impl Fn(u64, usize) -> Option<u64>) -> Division {
        let divisor = match self.instruction.op0_kind() {
            OpKind::Register => {
                let operand = self.instruction.op0_register();
                let full = name_of(operand.full_register());
                let value = self.registers.iter().find(|(name, _)| *name == full);
                value.map(|(_, value)| part(*value, operand))
            }
            OpKind::Memory => {
                let operand = self.accesses.first();
                operand.and_then(|access| memory(access.address, access.size))
            }
            _ => None,
        };
        match divisor {
            Some(0) => Division::ByZero,
            Some(_) => Division::TooLarge,
            None => Division::Unknown,
        }
    }
}

/// The bits of a full register that `operand` names.
fn part(value: u64, operand: Register) -> u64 {
    let high = matches!(operand, Register::AH | Register::BH | Register::CH | Register::DH);
    let value = if high { value >> 8 } else { value };
    match operand.size() {
        8 => value,
        size => value & ((1 << (size * 8)) - 1),
    }
}

fn register_value(register: Register, general: &[u64; 16], fs: u64) -> Option<u64> {
    match register {
        Register::FS => Some(fs),
        Register::ES | Register::CS | Register::SS | Register::DS | Register::GS => Some(0),
        _ if register.is_gpr() => {
            general.get(register.full_register().number()).map(|value| part(*value, register))
        }
        _ => None,
    }
}

fn name_of(register: Register) -> String {
    format!("{register:?}").to_lowercase()
}

fn reads(access: OpAccess) -> bool {
    !matches!(access, OpAccess::None | OpAccess::Write | OpAccess::CondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(code: &[u8], general: [u64; 16]) -> Stopped {
        Stopped::decode(code, 0x1000, &general, 0).expect("an instruction")
    }

    #[test]
    fn registers_and_memory_of_a_load() {
        let mut general = [0; 16];
        general[0] = 0x40;
        let load = decode(&[0x8b, 0x40, 0x08], general); // mov eax, [rax+8]
        assert_eq!(load.text, "mov eax, [rax+8]");
        assert_eq!(load.registers, [("rax".to_owned(), 0x40)]);
        let access = load.access_at(0x4a).expect("inside");
        assert_eq!((access.address, access.size, access.write), (0x48, 4, false));
        assert!(load.access_at(0x4c).is_none() && load.access_at(0x47).is_none());
    }

    #[test]
    fn a_division_tells_its_divisor() {
        let nothing = |_, _| None;
        let by_cl = decode(&[0xf6, 0xf9], [0x1_0000; 16]); // idiv cl
        assert_eq!(by_cl.division(nothing), Division::ByZero);
        let by_ecx = decode(&[0xf7, 0xf9], [u64::MAX; 16]); // idiv ecx
        assert_eq!(by_ecx.division(nothing), Division::TooLarge);
        let by_memory = decode(&[0xf7, 0x3c, 0x24], [0; 16]); // idiv dword ptr [rsp]
        assert_eq!(by_memory.division(nothing), Division::Unknown);
        assert_eq!(by_memory.division(|_, _| Some(0)), Division::ByZero);
    }

    #[test]
    fn odd_addresses_are_noticed() {
        let mut general = [0; 16];
        general[0] = 0x1008;
        let aligned = decode(&[0x0f, 0x28, 0x00], general); // movaps xmm0, [rax]
        assert_eq!(aligned.misaligned().map(|access| access.size), Some(16));
        general[0] = 0xdead_beef_dead_beef;
        let wild = decode(&[0x8b, 0x00], general);
        assert_eq!(wild.not_canonical().map(|access| access.address), Some(general[0]));
        assert!(decode(&[0xf4], general).is_privileged()); // hlt
        assert!(decode(&[0x0f, 0x0b], general).is_undefined()); // ud2
    }
}
