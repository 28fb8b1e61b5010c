//! Instructions whose answer is the engine's to give: what the processor is, what time it is,
//! random numbers.
//!
//! The guest sees a processor without AVX-512, AMX, protection keys, transactions and hardware
//! random numbers: what the engine cannot run, or could not replay.

use super::cpu::Registers;
use super::guest::Checked;
use super::signal::frame::GuestMemory;
use crate::processor::is_canonical;
use iced_x86::{Instruction, Mnemonic, Register};
use std::arch::x86_64::{__cpuid_count, __rdtscp, _rdtsc};

/// What became of an instruction.
#[derive(Debug, PartialEq, Eq)]
pub enum Emulated {
    /// It has executed.
    Done,
    /// It raises a general protection fault.
    Fault,
    /// It is not one of those that can be emulated.
    Unknown,
}

const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;
const RBX: usize = 3;
const RSP: usize = 4;

/// Executes one instruction on the guest's registers and moves the pc behind it.
pub fn emulate(instruction: &Instruction, registers: &mut Registers, base_bits: u32) -> Emulated {
    match instruction.mnemonic() {
        Mnemonic::Cpuid => {
            let general = &mut registers.general;
            let answer = cpuid(general[RAX] as u32, general[RCX] as u32);
            for (register, value) in [RAX, RBX, RCX, RDX].into_iter().zip(answer) {
                general[register] = u64::from(value);
            }
        }
        Mnemonic::Rdtsc => {
            // SAFETY: every x86-64 processor has it.
            let now = unsafe { _rdtsc() };
            set_pair(registers, now);
        }
        Mnemonic::Rdtscp => {
            let mut processor = 0;
            // SAFETY: the guest asks for it, so the processor has it.
            let now = unsafe { __rdtscp(&mut processor) };
            set_pair(registers, now);
            registers.general[RCX] = 0;
        }
        Mnemonic::Xgetbv => set_pair(registers, super::cpu::VECTOR_MASK),
        Mnemonic::Wrfsbase => match new_base(instruction, registers, base_bits) {
            Some(base) => registers.fs = base,
            None => return Emulated::Fault,
        },
        Mnemonic::Wrgsbase => {
            let Some(base) = new_base(instruction, registers, base_bits) else {
                return Emulated::Fault;
            };
            // SAFETY: GS is the guest's own, in Rust as well.
            unsafe { std::arch::asm!("wrgsbase {}", in(reg) base) };
        }
        Mnemonic::Popf | Mnemonic::Popfq => {
            let (length, mask) = match instruction.mnemonic() {
                Mnemonic::Popf => (2, POPPED & 0xffff),
                _ => (8, POPPED),
            };
            let mut popped = [0; 8];
            // Translated code has looked there just now.
            if !Checked.read(registers.general[RSP], &mut popped[..length]) {
                return Emulated::Fault;
            }
            registers.flags = registers.flags & !mask | u64::from_le_bytes(popped) & mask;
            registers.general[RSP] += length as u64;
        }
        Mnemonic::Xtest => registers.flags = registers.flags & !ARITHMETIC | ZF,
        Mnemonic::Rdpid => set(registers, instruction.op0_register(), 0),
        Mnemonic::Rdrand | Mnemonic::Rdseed => {
            set(registers, instruction.op0_register(), random());
            registers.flags = registers.flags & !ARITHMETIC | CF;
        }
        _ => return Emulated::Unknown,
    }
    registers.pc = instruction.next_ip();
    Emulated::Done
}

const CF: u64 = 1;
const ZF: u64 = 0x40;
const ARITHMETIC: u64 = 0x8d5;
/// What POPF changes: ID, AC, NT, OF, DF, TF and the arithmetic flags.
const POPPED: u64 = 0x24_4dd5;

/// Whether the answer comes from outside the program: the processor, the clock, chance.
pub fn asks_outside(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Cpuid
            | Mnemonic::Rdtsc
            | Mnemonic::Rdtscp
            | Mnemonic::Xgetbv
            | Mnemonic::Rdpid
            | Mnemonic::Rdrand
            | Mnemonic::Rdseed
    )
}

/// Whether the engine executes the instruction itself.
pub fn is_emulated(instruction: &Instruction) -> bool {
    asks_outside(instruction)
        || moves_segment(instruction)
        || instruction.mnemonic() == Mnemonic::Xtest
}

/// Whether the instruction moves the base of a segment.
pub fn moves_segment(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Wrfsbase | Mnemonic::Wrgsbase)
}

/// The base that WRFSBASE or WRGSBASE sets, if it is canonical.
fn new_base(instruction: &Instruction, registers: &Registers, bits: u32) -> Option<u64> {
    let register = instruction.op0_register();
    let value = registers.general[register.full_register() as usize - Register::RAX as usize];
    let base = if register.size() == 8 { value } else { value & 0xffff_ffff };
    is_canonical(base, bits).then_some(base)
}

fn set_pair(registers: &mut Registers, value: u64) {
    registers.general[RAX] = value & 0xffff_ffff;
    registers.general[RDX] = value >> 32;
}

fn set(registers: &mut Registers, register: Register, value: u64) {
    let number = register.full_register() as usize - Register::RAX as usize;
    let old = registers.general[number];
    registers.general[number] = match register.size() {
        8 => value,
        4 => value & 0xffff_ffff,
        _ => old & !0xffff | value & 0xffff,
    };
}

fn random() -> u64 {
    let mut value = 0u64;
    // SAFETY: the kernel writes eight bytes.
    unsafe { crate::sys::syscall!(libc::SYS_getrandom, &raw mut value, 8, 0) };
    value
}

/// CPUID as the guest sees it: eax, ebx, ecx, edx.
pub fn cpuid(leaf: u32, subleaf: u32) -> [u32; 4] {
    // SAFETY: every x86-64 processor has it.
    #[allow(unused_unsafe)]
    let real = unsafe { __cpuid_count(leaf, subleaf) };
    let mut answer = [real.eax, real.ebx, real.ecx, real.edx];
    match (leaf, subleaf) {
        (1, _) => {
            answer[1] &= 0x00ff_ffff; // initial APIC id
            answer[2] &= !(1 << 30 | 1 << 3 | 1 << 21); // RDRAND, MONITOR, x2APIC
        }
        (7, 0) => {
            answer[0] = answer[0].min(1);
            answer[1] &= !leaf7_ebx_hidden();
            answer[2] &= !leaf7_ecx_hidden();
            answer[3] &= !leaf7_edx_hidden();
        }
        (7, 1) => answer = [answer[0] & (1 << 4), 0, 0, 0], // AVX-VNNI alone
        (7, _) => answer = [0; 4],
        (0xb | 0x1f, _) => answer[3] = 0, // x2APIC id
        (0xd, 0) => answer = [super::cpu::VECTOR_MASK as u32, 832, 832, 0],
        (0xd, 1) => answer = [answer[0] & 7, 832, 0, 0],
        (0xd, 2) => {}
        (0xd, _) => answer = [0; 4],
        (0x14 | 0x19 | 0x1d | 0x1e | 0x24, _) => answer = [0; 4],
        (0x8000_0001, _) => answer[2] &= !(1 << 11 | 1 << 15 | 1 << 16 | 1 << 29), // XOP, LWP, FMA4, MWAITX
        (0x8000_001e, _) => answer[0] = 0,
        _ => {}
    }
    answer
}

fn leaf7_ebx_hidden() -> u32 {
    // HLE, RTM, AVX512F, DQ, RDSEED, IFMA, PF, ER, CD, BW, VL
    bits(&[4, 11, 16, 17, 18, 21, 26, 27, 28, 30, 31])
}

fn leaf7_ecx_hidden() -> u32 {
    // VBMI, PKU, OSPKE, WAITPKG, VBMI2, CET, VNNI, BITALG, VPOPCNTDQ, RDPID, KL, ENQCMD, PKS
    bits(&[1, 3, 4, 5, 6, 7, 11, 12, 14, 22, 23, 29, 31])
}

fn leaf7_edx_hidden() -> u32 {
    // 4VNNIW, 4FMAPS, UINTR, VP2INTERSECT, RTM abort, IBT, AMX-BF16, FP16, AMX-TILE, AMX-INT8
    bits(&[2, 3, 5, 8, 11, 13, 20, 22, 23, 24, 25])
}

fn bits(numbers: &[u32]) -> u32 {
    numbers.iter().fold(0, |bits, number| bits | 1 << number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avx512_and_hardware_randomness_are_hidden() {
        assert_eq!(cpuid(7, 0)[1] & (1 << 16), 0);
        assert_eq!(cpuid(1, 0)[2] & (1 << 30), 0);
        assert_eq!(cpuid(0xd, 0)[..3], [7, 832, 832]);
    }
}
