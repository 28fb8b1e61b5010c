//! Random operands for an instruction form.

use super::builder::{InstructionBuilder, RBX, RDI, RSI};
use super::layout::{SCRATCH, SCRATCH_SIZE, UNMAPPED};
use iced_x86::{Code, EncodingKind, Instruction, OpCodeOperandKind as Kind, OpKind, Register};

/// An instruction of form `code` with random operands; branch targets are still to be set. None
/// if the operands that came up contradict each other.
pub fn draw(builder: &mut InstructionBuilder, code: Code) -> Option<Instruction> {
    let mut instruction = Instruction::new();
    instruction.set_code(code);
    let form = code.op_code();
    for operand in 0..form.op_count() {
        set_operand(builder, &mut instruction, operand, form.op_kind(operand))?;
    }
    Some(instruction)
}

fn set_operand(
    builder: &mut InstructionBuilder,
    instruction: &mut Instruction,
    operand: u32,
    kind: Kind,
) -> Option<()> {
    if let Some(register) = register_for(builder, kind) {
        instruction.set_op_kind(operand, OpKind::Register);
        instruction.set_op_register(operand, register);
        return Some(());
    }
    match kind {
        Kind::mem_offs => set_absolute(builder, instruction, operand),
        Kind::seg_rSI | Kind::es_rDI | Kind::seg_rDI => {
            set_string(builder, instruction, operand, kind)
        }
        Kind::seg_rBX_al => {
            let spot = builder.choose_spot(256, false);
            builder.spot = spot;
            builder.fix_pointer(RBX, spot)?;
            instruction.set_op_kind(operand, OpKind::Memory);
            instruction.set_memory_base(builder.pointer_register(RBX));
            instruction.set_memory_index(Register::AL);
            Some(())
        }
        Kind::mem_vsib32x | Kind::mem_vsib64x | Kind::mem_vsib32y | Kind::mem_vsib64y => {
            set_gathered(builder, instruction, operand, kind)
        }
        Kind::br64_1 | Kind::br64_4 => {
            instruction.set_op_kind(operand, OpKind::NearBranch64);
            Some(())
        }
        _ if is_immediate(kind) => {
            set_immediate(builder, instruction, operand, kind);
            Some(())
        }
        _ => set_memory(builder, instruction, operand),
    }
}

/// A register, if the operand kind has one (and, where it may be memory too, chance wants one).
fn register_for(builder: &mut InstructionBuilder, kind: Kind) -> Option<Register> {
    let number = builder.random.below(16) as u32;
    let either = builder.random.chance(2, 5);
    let byte =
        if builder.random.chance(1, 5) { Register::AH + number % 4 } else { byte_register(number) };
    Some(match kind {
        Kind::r8_reg | Kind::r8_opcode => byte,
        Kind::r8_or_mem if either => byte,
        Kind::r16_or_mem if either => Register::AX + number,
        Kind::r32_or_mem if either => Register::EAX + number,
        Kind::r64_or_mem if either => Register::RAX + number,
        Kind::mm_or_mem if either => Register::MM0 + number % 8,
        Kind::xmm_or_mem if either => Register::XMM0 + number,
        Kind::ymm_or_mem if either => Register::YMM0 + number,
        Kind::r16_reg | Kind::r16_rm | Kind::r16_opcode => Register::AX + number,
        Kind::r32_reg | Kind::r32_rm | Kind::r32_opcode | Kind::r32_vvvv => Register::EAX + number,
        Kind::r64_reg | Kind::r64_rm | Kind::r64_opcode | Kind::r64_vvvv => Register::RAX + number,
        Kind::mm_reg | Kind::mm_rm => Register::MM0 + number % 8,
        Kind::xmm_reg | Kind::xmm_rm | Kind::xmm_vvvv | Kind::xmm_is4 | Kind::xmm_is5 => {
            Register::XMM0 + number
        }
        Kind::ymm_reg | Kind::ymm_rm | Kind::ymm_vvvv | Kind::ymm_is4 | Kind::ymm_is5 => {
            Register::YMM0 + number
        }
        Kind::seg_reg => Register::ES + number % 6,
        Kind::es => Register::ES,
        Kind::cs => Register::CS,
        Kind::ss => Register::SS,
        Kind::ds => Register::DS,
        Kind::fs => Register::FS,
        Kind::gs => Register::GS,
        Kind::al => Register::AL,
        Kind::cl => Register::CL,
        Kind::ax => Register::AX,
        Kind::dx => Register::DX,
        Kind::eax => Register::EAX,
        Kind::rax => Register::RAX,
        Kind::st0 => Register::ST0,
        Kind::sti_opcode => Register::ST0 + number % 8,
        _ => return None,
    })
}

/// The low byte of a general register (iced numbers the high bytes in between).
pub fn byte_register(number: u32) -> Register {
    if number < 4 { Register::AL + number } else { Register::SPL + (number - 4) }
}

fn is_immediate(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::imm8
            | Kind::imm8_const_1
            | Kind::imm8sex16
            | Kind::imm8sex32
            | Kind::imm8sex64
            | Kind::imm16
            | Kind::imm32
            | Kind::imm32sex64
            | Kind::imm64
    )
}

fn set_immediate(
    builder: &mut InstructionBuilder,
    instruction: &mut Instruction,
    operand: u32,
    kind: Kind,
) {
    let value = builder.random.biased();
    let second = (0..operand).any(|earlier| {
        matches!(instruction.op_kind(earlier), OpKind::Immediate8 | OpKind::Immediate16)
    });
    let op_kind = match kind {
        Kind::imm8 if second => OpKind::Immediate8_2nd,
        Kind::imm8 | Kind::imm8_const_1 => OpKind::Immediate8,
        Kind::imm8sex16 => OpKind::Immediate8to16,
        Kind::imm8sex32 => OpKind::Immediate8to32,
        Kind::imm8sex64 => OpKind::Immediate8to64,
        Kind::imm16 => OpKind::Immediate16,
        Kind::imm32 => OpKind::Immediate32,
        Kind::imm32sex64 => OpKind::Immediate32to64,
        _ => OpKind::Immediate64,
    };
    instruction.set_op_kind(operand, op_kind);
    match op_kind {
        OpKind::Immediate8_2nd => instruction.set_immediate8_2nd(value as u8),
        OpKind::Immediate8 if kind == Kind::imm8_const_1 => instruction.set_immediate8(1),
        OpKind::Immediate8 => instruction.set_immediate8(value as u8),
        OpKind::Immediate8to16 => instruction.set_immediate8to16(i16::from(value as i8)),
        OpKind::Immediate8to32 => instruction.set_immediate8to32(i32::from(value as i8)),
        OpKind::Immediate8to64 => instruction.set_immediate8to64(i64::from(value as i8)),
        OpKind::Immediate16 => instruction.set_immediate16(value as u16),
        OpKind::Immediate32 => instruction.set_immediate32(value as u32),
        OpKind::Immediate32to64 => instruction.set_immediate32to64(i64::from(value as i32)),
        _ => instruction.set_immediate64(value),
    }
}

/// Bytes of the memory operand; iced does not say for XSAVE, whose area here is x87, SSE and AVX.
pub fn memory_size(instruction: &Instruction) -> u64 {
    match instruction.memory_size().size() {
        0 if instruction.code().op_code().is_save_restore() => 832,
        0 => 1,
        size => size as u64,
    }
}

fn set_memory(
    builder: &mut InstructionBuilder,
    instruction: &mut Instruction,
    operand: u32,
) -> Option<()> {
    instruction.set_op_kind(operand, OpKind::Memory);
    let size = memory_size(instruction);
    // Legacy SSE faults on unaligned operands of 16 bytes; XSAVE and CMPXCHG16B do too.
    let wide = size >= 16;
    let aligned = wide && (instruction.code().encoding() == EncodingKind::Legacy || size > 32)
        || builder.random.chance(1, 2);
    let spot = builder.choose_spot(size, aligned);
    builder.address(instruction, spot)
}

fn set_absolute(
    builder: &mut InstructionBuilder,
    instruction: &mut Instruction,
    operand: u32,
) -> Option<()> {
    let spot = builder.choose_spot(8, false);
    builder.spot = spot;
    instruction.set_op_kind(operand, OpKind::Memory);
    if builder.narrow && spot >> 32 != 0 {
        return None;
    }
    instruction.set_memory_displ_size(if builder.narrow { 4 } else { 8 });
    instruction.set_memory_displacement64(spot);
    Some(())
}

fn set_string(
    builder: &mut InstructionBuilder,
    instruction: &mut Instruction,
    operand: u32,
    kind: Kind,
) -> Option<()> {
    let (wide, narrow, register) = match kind {
        Kind::seg_rSI => (OpKind::MemorySegRSI, OpKind::MemorySegESI, RSI),
        Kind::es_rDI => (OpKind::MemoryESRDI, OpKind::MemoryESEDI, RDI),
        _ => (OpKind::MemorySegRDI, OpKind::MemorySegEDI, RDI),
    };
    instruction.set_op_kind(operand, if builder.narrow { narrow } else { wide });
    // Enough room for a few dozen repetitions on either side, or close to an edge.
    let spot = match builder.random.below(10) {
        0 => SCRATCH + builder.random.below(64),
        1 => SCRATCH + SCRATCH_SIZE - builder.random.below(64),
        2 => SCRATCH + SCRATCH_SIZE / 2 - builder.random.below(64),
        3 => builder.choose_spot(8, false),
        _ => SCRATCH + SCRATCH_SIZE / 2 - 1024 + builder.random.below(2048),
    };
    builder.spot = spot;
    builder.fix_pointer(register, spot)
}

/// A gather: a vector of indices around the base, now and then one that points nowhere.
fn set_gathered(
    builder: &mut InstructionBuilder,
    instruction: &mut Instruction,
    operand: u32,
    kind: Kind,
) -> Option<()> {
    let number = builder.random.below(16) as usize;
    let wide_vector = matches!(kind, Kind::mem_vsib32y | Kind::mem_vsib64y);
    let wide_index = matches!(kind, Kind::mem_vsib64x | Kind::mem_vsib64y);
    let vector = if wide_vector { Register::YMM0 } else { Register::XMM0 };
    let scale: u32 = 1 << builder.random.below(4);
    let base = builder.random.below(16) as usize;
    let middle = SCRATCH + SCRATCH_SIZE / 2;
    builder.spot = middle;
    instruction.set_op_kind(operand, OpKind::Memory);
    builder.fix_pointer(base, middle)?;
    instruction.set_memory_base(builder.pointer_register(base));
    instruction.set_memory_index(vector + number as u32);
    instruction.set_memory_index_scale(scale);
    let size = if wide_index { 8 } else { 4 };
    let mut bytes = Vec::new();
    for _ in 0..32 / size {
        let index = if builder.random.chance(1, 24) {
            ((UNMAPPED - middle) / u64::from(scale)) as i64
        } else {
            builder.random.below(900) as i64 - 450
        };
        bytes.extend_from_slice(&index.to_le_bytes()[..size]);
    }
    builder.patch_vector(number, &bytes);
    Some(())
}
