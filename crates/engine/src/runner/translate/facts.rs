//! What the translator needs to know of one guest instruction: which registers and flags it
//! reads and writes, and how control leaves it.

use crate::runner::emulate::is_emulated;
use iced_x86::{
    Code, CpuidFeature, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register, RflagsBits,
};

/// A set of general registers by hardware number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Set(pub u16);

impl Set {
    /// The set with one more register.
    #[must_use]
    pub fn with(self, register: u8) -> Self {
        Self(self.0 | 1 << register)
    }

    /// Whether the register is in the set.
    pub fn has(self, register: u8) -> bool {
        self.0 & 1 << register != 0
    }
}

/// The arithmetic flags and DF, in iced-x86's numbering.
pub const ALL_FLAGS: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF
    | RflagsBits::DF
    | RflagsBits::AC
    | RflagsBits::IF;

/// The flags that our own inserted arithmetic overwrites.
pub const ARITHMETIC_FLAGS: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// How control goes on after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// Conditionally to a known target.
    Branch(u64),
    /// JRCXZ or one of the LOOP family: conditional, with a short form only.
    ShortBranch(u64),
    /// To a known target.
    Jump(u64),
    /// To a known target, with a return address pushed.
    Call(u64),
    /// To wherever an operand says.
    IndirectJump,
    /// To wherever an operand says, with a return address pushed.
    IndirectCall,
    /// To the address on the stack.
    Return,
    /// Into the kernel.
    Syscall,
    /// Into the engine, which does what the instruction would.
    Emulate,
    /// The engine cannot run this.
    Refuse,
    /// Raises an exception at once (UD2, INT3, HLT …); executed as it is.
    Trap,
}

/// Registers and flags of one instruction.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// General registers that it changes, wholly or in part.
    pub writes: Set,
    /// Every general register that the instruction mentions in any way.
    pub uses: Set,
    /// Flags read.
    pub flags_read: u32,
    /// Flags that have a new (or undefined) value afterwards.
    pub flags_written: u32,
    /// How control goes on.
    pub flow: Flow,
}

/// The hardware number of a general register of any width.
pub fn number(register: Register) -> Option<u8> {
    if register.is_gpr() {
        // AH … BH are parts of the first four.
        Some(register.full_register() as u8 - Register::RAX as u8)
    } else {
        None
    }
}

/// Collects the facts of an instruction.
pub fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Facts {
    let (mut writes, mut uses) = (Set::default(), Set::default());
    for used in factory.info(instruction).used_registers() {
        let Some(register) = number(used.register()) else { continue };
        uses = uses.with(register);
        if !matches!(
            used.access(),
            OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        ) {
            writes = writes.with(register);
        }
    }
    Facts {
        writes,
        uses,
        flags_read: instruction.rflags_read(),
        flags_written: instruction.rflags_modified(),
        flow: flow(instruction),
    }
}

fn flow(instruction: &Instruction) -> Flow {
    if let Some(special) = special(instruction) {
        return special;
    }
    match instruction.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::ConditionalBranch => conditional(instruction),
        FlowControl::UnconditionalBranch => Flow::Jump(instruction.near_branch_target()),
        FlowControl::IndirectBranch if !is_far(instruction) => Flow::IndirectJump,
        FlowControl::IndirectCall if !is_far(instruction) => Flow::IndirectCall,
        FlowControl::Return => match instruction.mnemonic() {
            Mnemonic::Ret => Flow::Return,
            _ => Flow::Refuse,
        },
        FlowControl::Call => match instruction.mnemonic() {
            Mnemonic::Call => Flow::Call(instruction.near_branch_target()),
            Mnemonic::Syscall => Flow::Syscall,
            _ => Flow::Refuse,
        },
        FlowControl::Exception => Flow::Trap,
        FlowControl::Interrupt => match instruction.code() {
            Code::Int3 | Code::Int1 => Flow::Trap,
            Code::Int_imm8 if instruction.immediate8() != 0x80 => Flow::Trap,
            _ => Flow::Refuse,
        },
        _ => Flow::Refuse,
    }
}

fn is_far(instruction: &Instruction) -> bool {
    instruction.is_jmp_far_indirect() || instruction.is_call_far_indirect()
}

fn conditional(instruction: &Instruction) -> Flow {
    let target = instruction.near_branch_target();
    if instruction.is_jcc_short_or_near() {
        Flow::Branch(target)
    } else {
        Flow::ShortBranch(target)
    }
}

/// Instructions whose result the engine decides, and those it refuses.
fn special(instruction: &Instruction) -> Option<Flow> {
    if is_emulated(instruction) {
        return Some(Flow::Emulate);
    }
    match instruction.mnemonic() {
        Mnemonic::Hlt
        | Mnemonic::Ud0
        | Mnemonic::Ud1
        | Mnemonic::Ud2
        | Mnemonic::In
        | Mnemonic::Out
        | Mnemonic::Cli
        | Mnemonic::Sti => return Some(Flow::Trap),
        Mnemonic::INVALID => return Some(Flow::Trap),
        _ => {}
    }
    // Loading FS or GS with a selector would clear the base behind our back.
    if instruction.op0_register().is_segment_register() && instruction.op_count() == 2 {
        return Some(Flow::Refuse);
    }
    instruction.cpuid_features().iter().any(|feature| hidden(*feature)).then_some(Flow::Refuse)
}

/// Features that CPUID does not show to the guest and that cannot be emulated.
fn hidden(feature: CpuidFeature) -> bool {
    use CpuidFeature as F;
    matches!(
        feature,
        F::AVX512F
            | F::AVX512CD
            | F::AVX512BW
            | F::AVX512DQ
            | F::AVX512VL
            | F::AVX512_4FMAPS
            | F::AVX512_4VNNIW
            | F::AVX512_BF16
            | F::AVX512_BITALG
            | F::AVX512_FP16
            | F::AVX512_IFMA
            | F::AVX512_VBMI
            | F::AVX512_VBMI2
            | F::AVX512_VNNI
            | F::AVX512_VP2INTERSECT
            | F::AVX512_VPOPCNTDQ
            | F::AMX_TILE
            | F::AMX_BF16
            | F::AMX_INT8
            | F::AMX_FP16
            | F::RTM
            | F::PKU
            | F::UINTR
            | F::KL
    )
}
