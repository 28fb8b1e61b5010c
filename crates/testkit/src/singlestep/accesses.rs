//! The accesses an instruction is about to make, from the registers before it.

use super::decode::{Decoded, Shape, mask_register};
use super::process::{Process, Registers};
use super::step::{Access, AccessKind};
use iced_x86::{Code, CodeSize, OpAccess, Register, UsedMemory};

/// Appends the accesses of the instruction that the process executes next: reads, then writes.
pub fn list(process: &Process, decoded: &Decoded, regs: &Registers, accesses: &mut Vec<Access>) {
    if decoded.shape == Shape::CacheLine {
        let narrow = decoded.instruction.code() == Code::Clzerod;
        let address = value(if narrow { Register::EAX } else { Register::RAX }, regs) & !63;
        accesses.push(Access { address, size: 64, kind: AccessKind::Write, at: 0 });
        return;
    }
    for kind in [AccessKind::Read, AccessKind::Write] {
        for used in decoded.memory.iter().filter(|used| has(used.access(), kind)) {
            let mut put = |address: u64, size: u32| {
                accesses.push(Access { address, size, kind, at: 0 });
            };
            let size = used.memory_size().size() as u32;
            match decoded.shape {
                Shape::Repeated if counter(used, regs) == 0 => {}
                // iced leaves the size of a repeated access open; the instruction knows it.
                Shape::Repeated => {
                    let size = decoded.instruction.memory_size().size() as u32;
                    put(address(used, 0, regs, &[]), size);
                }
                Shape::Plain => put(address(used, 0, regs, &[]), size),
                Shape::BitString => put(bit_string(decoded, used, regs), size),
                Shape::Gather => gather(process, decoded, used, regs, &mut put),
                Shape::Masked(element) => {
                    let mask = vector(process, mask_register(&decoded.instruction));
                    let start = address(used, 0, regs, &[]);
                    for index in 0..size / element {
                        if is_enabled(&mask, index, element) {
                            put(start.wrapping_add(u64::from(index * element)), element);
                        }
                    }
                }
                Shape::CacheLine => {}
                Shape::ExtendedState => put(address(used, 0, regs, &[]), extended_size(regs)),
            }
        }
    }
}

fn has(access: OpAccess, kind: AccessKind) -> bool {
    use OpAccess as A;
    match kind {
        AccessKind::Read => {
            matches!(access, A::Read | A::CondRead | A::ReadWrite | A::ReadCondWrite)
        }
        AccessKind::Write => {
            matches!(access, A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite)
        }
    }
}

fn counter(used: &UsedMemory, regs: &Registers) -> u64 {
    if used.address_size() == CodeSize::Code32 { regs.rcx & 0xffff_ffff } else { regs.rcx }
}

/// The address of an operand; `indices` are the bytes of a gather's index register.
fn address(used: &UsedMemory, element: usize, regs: &Registers, indices: &[u8]) -> u64 {
    used.virtual_address(element, |register, element, size| {
        if register.is_vector_register() {
            let bytes = indices.get(element * size..(element + 1) * size)?;
            return Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)));
        }
        Some(value(register, regs))
    })
    .unwrap_or(0)
}

/// A register, or the base of a segment.
pub fn value(register: Register, regs: &Registers) -> u64 {
    let full = match register.full_register() {
        Register::RAX => regs.rax,
        Register::RCX => regs.rcx,
        Register::RDX => regs.rdx,
        Register::RBX => regs.rbx,
        Register::RSP => regs.rsp,
        Register::RBP => regs.rbp,
        Register::RSI => regs.rsi,
        Register::RDI => regs.rdi,
        Register::R8 => regs.r8,
        Register::R9 => regs.r9,
        Register::R10 => regs.r10,
        Register::R11 => regs.r11,
        Register::R12 => regs.r12,
        Register::R13 => regs.r13,
        Register::R14 => regs.r14,
        Register::R15 => regs.r15,
        Register::FS => return regs.fs_base,
        Register::GS => return regs.gs_base,
        _ => return 0,
    };
    match register.size() {
        1 if matches!(register, Register::AH | Register::CH | Register::DH | Register::BH) => {
            full >> 8 & 0xff
        }
        1 => full & 0xff,
        2 => full & 0xffff,
        4 => full & 0xffff_ffff,
        _ => full,
    }
}

/// The word of a bit string that holds the bit: the signed offset counts bits from the operand.
fn bit_string(decoded: &Decoded, used: &UsedMemory, regs: &Registers) -> u64 {
    let register = decoded.instruction.op1_register();
    let raw = value(register, regs);
    let offset = match register.size() {
        2 => i64::from(raw as i16),
        4 => i64::from(raw as i32),
        _ => raw as i64,
    };
    let size = register.size() as i64;
    address(used, 0, regs, &[]).wrapping_add_signed((offset >> (size * 8).ilog2()) * size)
}

fn gather(
    process: &Process,
    decoded: &Decoded,
    used: &UsedMemory,
    regs: &Registers,
    put: &mut impl FnMut(u64, u32),
) {
    let instruction = &decoded.instruction;
    let size = used.memory_size().size() as u32;
    let indices = vector(process, instruction.memory_index());
    let mask = vector(process, mask_register(instruction));
    let index_size = if used.vsib_size() == 4 { 4 } else { 8 };
    let by_index = instruction.memory_index().size() / index_size;
    let by_result = instruction.op0_register().size() / size as usize;
    for element in 0..by_index.min(by_result) {
        if is_enabled(&mask, element as u32, size) {
            put(address(used, element, regs, &indices), size);
        }
    }
}

/// The top bit of an element decides.
fn is_enabled(mask: &[u8], index: u32, size: u32) -> bool {
    mask.get(((index + 1) * size - 1) as usize).is_some_and(|byte| byte & 0x80 != 0)
}

/// A vector register's bytes; none that cannot be had.
fn vector(process: &Process, register: Register) -> Vec<u8> {
    let number = register.number();
    let bytes = if register.is_mm() {
        process.mm(number).map(|bytes| bytes.to_vec())
    } else if register.is_xmm() && number < 16 {
        process.xmm(number).map(|bytes| bytes.to_vec())
    } else if register.is_ymm() && number < 16 {
        process.ymm(number).map(|bytes| bytes.to_vec())
    } else {
        return Vec::new();
    };
    bytes.unwrap_or_default()
}

/// Bytes of an XSAVE area: the legacy area and the header, and the AVX component if asked for.
fn extended_size(regs: &Registers) -> u32 {
    if regs.rax & 4 != 0 { 832 } else { 576 }
}
