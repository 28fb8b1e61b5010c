//! Which memory an instruction touches, as far as its bytes tell.

use super::facts::number;
use events::shape::Segment;
use iced_x86::{
    Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind, Register,
    UsedMemory,
};

/// How the address of an access is formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Known from the instruction alone.
    Constant(u64),
    /// A register plus a constant.
    Base(u8, i64),
    /// Base register if any, index register, scale, constant.
    Sum(Option<u8>, u8, u8, i32),
}

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Whether it writes.
    pub write: bool,
    /// Bytes.
    pub size: u16,
    /// What the address is relative to.
    pub segment: Segment,
    /// Its address.
    pub form: Form,
}

/// The accesses of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accesses {
    /// These, in order: reads, then writes.
    List(Vec<Operand>),
    /// A repeated string instruction: element size, whether it reads at rsi, reads at rdi, writes
    /// at rdi.
    Repeat {
        /// Bytes of an element.
        size: u16,
        /// Reads at the source.
        source: bool,
        /// Reads at the destination.
        compares: bool,
        /// Writes at the destination.
        writes: bool,
        /// Counter and addresses have 32 bits.
        narrow: bool,
        /// What the source is relative to.
        segment: Segment,
    },
    /// Only the engine can work them out, from the values of registers.
    Explicit,
}

impl Accesses {
    /// Whether it is a repeated string instruction that touches as much as its count says.
    pub fn is_plain_repeat(&self) -> bool {
        matches!(self, Self::Repeat { compares: false, narrow: false, segment: Segment::Flat, .. })
    }
}

/// Finds the accesses of an instruction.
pub fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Accesses {
    if is_repeated_string(instruction) {
        return repeat(instruction);
    }
    if instruction.mnemonic() == Mnemonic::Clzero {
        return Accesses::Explicit;
    }
    let used = factory.info(instruction).used_memory();
    let mut touched = used.iter().filter(|memory| memory.access() != OpAccess::NoMemAccess);
    if touched.clone().next().is_none() {
        return Accesses::List(Vec::new());
    }
    if is_irregular(instruction)
        || touched.any(|memory| memory.address_size() != iced_x86::CodeSize::Code64)
    {
        return Accesses::Explicit;
    }
    let mut list = Vec::with_capacity(2);
    for writes in [false, true] {
        for memory in used {
            if !touches(memory.access(), writes) {
                continue;
            }
            match operand(memory, writes) {
                Some(operand) => list.push(operand),
                None => return Accesses::Explicit,
            }
        }
    }
    Accesses::List(list)
}

fn touches(access: OpAccess, writes: bool) -> bool {
    use OpAccess as A;
    if writes {
        matches!(access, A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite)
    } else {
        matches!(access, A::Read | A::CondRead | A::ReadWrite | A::ReadCondWrite)
    }
}

fn operand(memory: &UsedMemory, write: bool) -> Option<Operand> {
    let size = size_of(memory.memory_size())?;
    let segment = segment(memory.segment());
    let displacement = memory.displacement() as i64;
    let form = match (memory.base(), memory.index()) {
        (Register::None | Register::RIP, Register::None) => Form::Constant(displacement as u64),
        (base, Register::None) => Form::Base(number(base)?, displacement),
        (base, index) => {
            let base = if base == Register::None { None } else { Some(number(base)?) };
            let index = number(index).filter(|_| index.is_gpr64())?;
            let displacement = i32::try_from(displacement).ok()?;
            Form::Sum(base, index, memory.scale() as u8, displacement)
        }
    };
    Some(Operand { write, size, segment, form })
}

/// Only two segments have a base.
fn segment(register: Register) -> Segment {
    match register {
        Register::FS => Segment::Fs,
        Register::GS => Segment::Gs,
        _ => Segment::Flat,
    }
}

fn size_of(size: MemorySize) -> Option<u16> {
    let bytes = size.size();
    (bytes > 0).then(|| u16::try_from(bytes).ok()).flatten()
}

fn is_repeated_string(instruction: &Instruction) -> bool {
    (instruction.has_rep_prefix() || instruction.has_repne_prefix())
        && instruction.is_string_instruction()
}

fn repeat(instruction: &Instruction) -> Accesses {
    use Mnemonic as M;
    let size = instruction.memory_size().size() as u16;
    let narrow = (0..instruction.op_count()).any(|operand| {
        matches!(
            instruction.op_kind(operand),
            OpKind::MemorySegESI | OpKind::MemorySegEDI | OpKind::MemoryESEDI
        )
    });
    let (source, compares, writes) = match instruction.mnemonic() {
        M::Movsb | M::Movsw | M::Movsd | M::Movsq => (true, false, true),
        M::Stosb | M::Stosw | M::Stosd | M::Stosq => (false, false, true),
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => (true, false, false),
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq => (true, true, false),
        M::Scasb | M::Scasw | M::Scasd | M::Scasq => (false, true, false),
        _ => return Accesses::Explicit,
    };
    let segment = segment(instruction.segment_prefix());
    Accesses::Repeat { size, source, compares, writes, narrow, segment }
}

/// Instructions whose accesses depend on more than the address of one operand.
fn is_irregular(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let bit_string = matches!(instruction.mnemonic(), M::Bt | M::Btc | M::Btr | M::Bts)
        && instruction.op1_kind() == OpKind::Register;
    bit_string
        || instruction.is_vsib()
        || matches!(
            instruction.mnemonic(),
            M::Maskmovq
                | M::Maskmovdqu
                | M::Vmaskmovdqu
                | M::Vmaskmovps
                | M::Vmaskmovpd
                | M::Vpmaskmovd
                | M::Vpmaskmovq
                | M::Xlatb
                | M::Enter
                | M::Xsave
                | M::Xsave64
                | M::Xsavec
                | M::Xsavec64
                | M::Xsaveopt
                | M::Xsaveopt64
                | M::Xrstor
                | M::Xrstor64
                | M::Fxsave
                | M::Fxsave64
                | M::Fxrstor
                | M::Fxrstor64
        )
}
