//! Memory accesses that only the values of registers tell: gathers, masked moves, bit strings,
//! XSAVE and the like. Worked out by the dispatcher right before such an instruction runs.

use super::cpu::Registers;
use super::thread::VectorState;
use super::translate::facts::number;
use iced_x86::{
    Code, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, Register, UsedMemory,
};

/// Tells whether each access writes, its address and its size.
pub fn each(
    instruction: &Instruction,
    registers: &Registers,
    vector: &VectorState,
    put: &mut impl FnMut(bool, u64, u32),
) {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_memory().to_vec();
    for write in [false, true] {
        for memory in used.iter().filter(|memory| touches(memory.access(), write)) {
            let wide = Wide { instruction, registers, vector, memory };
            wide.list(write, put);
        }
    }
    if instruction.mnemonic() == Mnemonic::Clzero {
        let narrow = instruction.code() == Code::Clzerod;
        let address = value(if narrow { Register::EAX } else { Register::RAX }, registers);
        put(true, address & !63, 64);
    }
}

fn touches(access: OpAccess, write: bool) -> bool {
    use OpAccess as A;
    if write {
        matches!(access, A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite)
    } else {
        matches!(access, A::Read | A::CondRead | A::ReadWrite | A::ReadCondWrite)
    }
}

struct Wide<'a> {
    instruction: &'a Instruction,
    registers: &'a Registers,
    vector: &'a VectorState,
    memory: &'a UsedMemory,
}

impl Wide<'_> {
    fn list(&self, write: bool, put: &mut impl FnMut(bool, u64, u32)) {
        use Mnemonic as M;
        let instruction = self.instruction;
        let size = self.memory.memory_size().size() as u32;
        match instruction.mnemonic() {
            _ if instruction.is_vsib() => self.gather(put),
            M::Maskmovq | M::Maskmovdqu | M::Vmaskmovdqu => {
                let mask = self.vector(instruction.op2_register());
                let bytes = if instruction.mnemonic() == M::Maskmovq { 8 } else { 16 };
                self.masked(write, &mask, 1, bytes, put);
            }
            M::Vmaskmovps | M::Vpmaskmovd => {
                let mask = self.vector(mask_register(instruction));
                self.masked(write, &mask, 4, size / 4, put);
            }
            M::Vmaskmovpd | M::Vpmaskmovq => {
                let mask = self.vector(mask_register(instruction));
                self.masked(write, &mask, 8, size / 8, put);
            }
            M::Bt | M::Btc | M::Btr | M::Bts if instruction.op1_register() != Register::None => {
                put(write, self.bit_string(), size);
            }
            M::Xsave
            | M::Xsave64
            | M::Xsaveopt
            | M::Xsaveopt64
            | M::Xsavec
            | M::Xsavec64
            | M::Xrstor
            | M::Xrstor64 => {
                let wanted = self.registers.general[0];
                put(write, self.address(), if wanted & 4 != 0 { 832 } else { 576 });
            }
            _ => put(write, self.address(), size),
        }
    }

    fn address(&self) -> u64 {
        self.address_with(self.memory.index())
    }

    fn address_with(&self, index: Register) -> u64 {
        let value = |register: Register| value(register, self.registers);
        let scaled = value(index).wrapping_mul(u64::from(self.memory.scale()));
        self.finish(value(self.memory.base()).wrapping_add(scaled))
    }

    fn finish(&self, sum: u64) -> u64 {
        let mut address = sum.wrapping_add(self.memory.displacement());
        if self.memory.address_size() == iced_x86::CodeSize::Code32 {
            address &= 0xffff_ffff;
        }
        let base = match self.memory.segment() {
            Register::FS => self.registers.fs,
            Register::GS => super::cpu::gs_base(),
            _ => 0,
        };
        address.wrapping_add(base)
    }

    fn bit_string(&self) -> u64 {
        let register = self.instruction.op1_register();
        let size = register.size() as u32 * 8;
        let raw = value(register, self.registers);
        let offset = match size {
            16 => i64::from(raw as i16),
            32 => i64::from(raw as i32),
            _ => raw as i64,
        };
        let element = offset.div_euclid(i64::from(size)) * i64::from(size / 8);
        self.address().wrapping_add_signed(element)
    }

    fn masked(
        &self,
        write: bool,
        mask: &[u8],
        element: u32,
        count: u32,
        put: &mut impl FnMut(bool, u64, u32),
    ) {
        let address = self.address();
        for index in 0..count {
            if mask[(index * element + element - 1) as usize] & 0x80 != 0 {
                put(write, address.wrapping_add(u64::from(index * element)), element);
            }
        }
    }

    fn gather(&self, put: &mut impl FnMut(bool, u64, u32)) {
        let instruction = self.instruction;
        let mask = self.vector(instruction.op2_register());
        let indices = self.vector(instruction.memory_index());
        let element = element_size(instruction);
        let index_size = if self.memory.vsib_size() == 8 { 8 } else { 4 };
        let destination = instruction.op0_register().size();
        let lanes = (destination / element).min(instruction.memory_index().size() / index_size);
        let base = value(self.memory.base(), self.registers);
        for lane in 0..lanes {
            if mask[lane * element + element - 1] & 0x80 == 0 {
                continue;
            }
            let bytes = &indices[lane * index_size..(lane + 1) * index_size];
            let index = match index_size {
                8 => i64::from_le_bytes(bytes.try_into().expect("eight bytes")),
                _ => i64::from(i32::from_le_bytes(bytes.try_into().expect("four bytes"))),
            };
            let scaled = index.wrapping_mul(i64::from(self.memory.scale()));
            put(false, self.finish(base.wrapping_add_signed(scaled)), element as u32);
        }
    }

    /// A vector register out of the XSAVE image.
    fn vector(&self, register: Register) -> Vec<u8> {
        let image = &self.vector.0;
        let present = image[512];
        if register.is_mm() {
            let index = register as usize - Register::MM0 as usize;
            // MMX registers are physical; the image is in stack order.
            let top = usize::from(image[3] >> 3 & 7);
            let slot = (index + 8 - top) % 8;
            return image[32 + 16 * slot..32 + 16 * slot + 8].to_vec();
        }
        let number = register.number();
        let mut bytes = vec![0; 32];
        if present & 2 != 0 {
            bytes[..16].copy_from_slice(&image[160 + 16 * number..176 + 16 * number]);
        }
        if present & 4 != 0 && register.is_ymm() {
            bytes[16..].copy_from_slice(&image[576 + 16 * number..592 + 16 * number]);
        }
        bytes
    }
}

fn mask_register(instruction: &Instruction) -> Register {
    // Both forms have the mask as their second operand.
    instruction.op1_register()
}

fn element_size(instruction: &Instruction) -> usize {
    match instruction.memory_size() {
        MemorySize::Float64 | MemorySize::Int64 | MemorySize::UInt64 => 8,
        other => match other.element_size() {
            8 => 8,
            _ => 4,
        },
    }
}

fn value(register: Register, registers: &Registers) -> u64 {
    let Some(index) = number(register) else { return 0 };
    let whole = registers.general[index as usize];
    match register {
        Register::AH | Register::BH | Register::CH | Register::DH => whole >> 8 & 0xff,
        _ => match register.size() {
            1 => whole & 0xff,
            2 => whole & 0xffff,
            4 => whole & 0xffff_ffff,
            _ => whole,
        },
    }
}
