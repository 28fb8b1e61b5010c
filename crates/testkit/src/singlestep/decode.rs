//! Decoded instructions, kept by address for as long as their bytes stay the same, and the shape
//! of their accesses.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register, UsedMemory,
};

/// How the accesses of an instruction follow from the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As iced says.
    Plain,
    /// As iced says, once a repetition while RCX (or ECX) is not zero.
    Repeated,
    /// A bit string: the bit offset in a register moves the address.
    BitString,
    /// A gather: one read for each enabled element.
    Gather,
    /// A masked move: one access for each enabled element of this many bytes.
    Masked(u32),
    /// CLZERO: the cache line around RAX is written.
    CacheLine,
    /// The XSAVE family: as many bytes as the components asked for take.
    ExtendedState,
}

pub struct Decoded {
    pub bytes: [u8; 15],
    pub length: u8,
    pub instruction: Instruction,
    pub memory: Vec<UsedMemory>,
    pub shape: Shape,
    pub control: FlowControl,
    /// Whether its result is the machine's to decide, so that a test may want to.
    pub decided_outside: bool,
}

impl Decoded {
    /// Decodes the first of `bytes`; an instruction that cannot be decoded is still a step.
    pub fn new(pc: u64, bytes: [u8; 15], count: usize, infos: &mut InstructionInfoFactory) -> Self {
        let mut decoder = Decoder::with_ip(64, &bytes[..count], pc, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let mut memory = infos.info(&instruction).used_memory().to_vec();
        memory.retain(|used| used.access() != OpAccess::NoMemAccess);
        Self {
            bytes,
            length: instruction.len() as u8,
            shape: shape(&instruction),
            control: instruction.flow_control(),
            decided_outside: decided_outside(instruction.mnemonic())
                || shape(&instruction) == Shape::ExtendedState,
            memory,
            instruction,
        }
    }
}

fn decided_outside(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Cpuid
            | Mnemonic::Xgetbv
            | Mnemonic::Rdtsc
            | Mnemonic::Rdtscp
            | Mnemonic::Rdpid
            | Mnemonic::Rdrand
            | Mnemonic::Rdseed
            | Mnemonic::Xtest
            | Mnemonic::Syscall
    )
}

fn shape(instruction: &Instruction) -> Shape {
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    if instruction.is_string_instruction() && repeats {
        return Shape::Repeated;
    }
    match instruction.mnemonic() {
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
            if instruction.op0_kind() == OpKind::Memory
                && instruction.op1_kind() == OpKind::Register =>
        {
            Shape::BitString
        }
        Mnemonic::Vmaskmovps | Mnemonic::Vpmaskmovd => Shape::Masked(4),
        Mnemonic::Vmaskmovpd | Mnemonic::Vpmaskmovq => Shape::Masked(8),
        Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu | Mnemonic::Maskmovq => Shape::Masked(1),
        Mnemonic::Clzero => Shape::CacheLine,
        Mnemonic::Xsave
        | Mnemonic::Xsave64
        | Mnemonic::Xsavec
        | Mnemonic::Xsavec64
        | Mnemonic::Xsaveopt
        | Mnemonic::Xsaveopt64
        | Mnemonic::Xrstor
        | Mnemonic::Xrstor64 => Shape::ExtendedState,
        _ if instruction.is_vsib() && instruction.op_count() == 3 => Shape::Gather,
        _ => Shape::Plain,
    }
}

/// The register that says which elements of a gather or masked move are enabled.
pub fn mask_register(instruction: &Instruction) -> Register {
    match instruction.mnemonic() {
        Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu | Mnemonic::Maskmovq => {
            instruction.op2_register()
        }
        _ if instruction.is_vsib() => instruction.op2_register(),
        _ => instruction.op1_register(),
    }
}

/// `vmovdqu [rsp], ymmN` in bytes.
pub fn vector_store(number: usize) -> Vec<u8> {
    let second = if number < 8 { 0xfe } else { 0x7e };
    vec![0xc5, second, 0x7f, 0x04 | ((number as u8 & 7) << 3), 0x24]
}

/// Whether the form pushes RFLAGS, where a single-stepped program would see the trap flag.
pub fn pushes_flags(code: Code) -> bool {
    matches!(code, Code::Pushfq | Code::Pushfw)
}

/// Whether the form loads RFLAGS, and so may change the trap flag.
pub fn pops_flags(code: Code) -> bool {
    matches!(code, Code::Popfq | Code::Popfw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_store_is_what_it_says() {
        for number in 0..16 {
            let bytes = vector_store(number);
            let instruction = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
            assert_eq!(instruction.code(), Code::VEX_Vmovdqu_ymmm256_ymm);
            assert_eq!(instruction.memory_base(), Register::RSP);
            assert_eq!(instruction.op1_register(), Register::YMM0 + number as u32);
        }
    }
}
