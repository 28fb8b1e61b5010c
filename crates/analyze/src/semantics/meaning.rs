//! The description of one instruction, and the general rule that makes it.

use super::builder::MeaningBuilder;
use super::parts::Parts;
use super::{copies, implicit, vectors};
use iced_x86::{
    CodeSize, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, UsedMemory,
};

/// Where the bytes of a span are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// A general register, by the processor's number.
    General(u8),
    /// A vector register.
    Vector(u8),
    /// The memory of an operand, by its index in [`Meaning::memory`].
    Memory(u8),
}

/// Some bytes of a register or of a memory operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Of what.
    pub side: Side,
    /// First byte.
    pub from: u16,
    /// How many.
    pub bytes: u16,
}

/// What a definition is made from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Uses {
    /// Register parts whose value goes in.
    pub values: Parts,
    /// Register parts that choose between values (CMOV, CMPXCHG).
    pub conditions: Parts,
    /// Bytes of memory operands whose value goes in. The registers that form their addresses stand
    /// with the operand.
    pub reads: Vec<Span>,
}

/// How a definition is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// A pointer keeps pointing into what it pointed to: additions, LEA.
    Offset,
    /// In any other way, also from nothing.
    Combined,
}

/// One definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Byte for byte.
    Copy {
        /// What is defined.
        to: Span,
        /// What it is then.
        from: Span,
    },
    /// All of these from all of those.
    Make {
        /// Register parts defined.
        parts: Parts,
        /// Bytes of a memory operand defined.
        write: Option<Span>,
        /// From what.
        uses: Uses,
        /// How.
        how: How,
    },
}

/// A memory operand. They stand in the order of the event stream: reads, then writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// Whether it is written; else it is read.
    pub write: bool,
    /// Bytes.
    pub bytes: u16,
    /// Registers that form its address.
    pub address: Parts,
    /// Whether it may be an entry of a table: small, and not in front of what the registers point to, as
    /// where copies read the end of what they copy.
    pub entry: bool,
}

/// What an instruction is to whoever follows control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Goes on with the next one.
    Plain,
    /// A conditional branch to this address.
    Branch(u64),
    /// A jump to this address.
    Jump(u64),
    /// A jump to wherever.
    IndirectJump,
    /// A call of this address.
    Call(u64),
    /// A call of wherever.
    IndirectCall,
    /// A return.
    Return,
    /// A system call.
    Syscall,
    /// Ends execution here: UD2, HLT and the like.
    Stop,
}

impl Form {
    /// Whether an instruction of this form at `pc` counts as a tick when it has executed: a taken backward
    /// branch, a return, an indirect jump or call. `taken`: of a conditional branch.
    #[must_use]
    pub fn is_tick(self, pc: u64, taken: bool) -> bool {
        match self {
            Self::Branch(target) => taken && target <= pc,
            Self::Jump(target) | Self::Call(target) => target <= pc,
            Self::IndirectJump | Self::IndirectCall | Self::Return => true,
            Self::Plain | Self::Syscall | Self::Stop => false,
        }
    }

    /// Whether it is a call.
    #[must_use]
    pub fn is_call(self) -> bool {
        matches!(self, Self::Call(_) | Self::IndirectCall)
    }
}

/// Whether an instruction could save or restore a register that callees must preserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shuttle {
    /// To the stack.
    Save(u8),
    /// From the stack.
    Restore(u8),
}

/// A string instruction with a repeat prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StringOp {
    /// Copies.
    Moves,
    /// Fills with the accumulator.
    Stores,
    /// Loads the accumulator again and again.
    Loads,
    /// Compares memory with memory.
    Compares,
    /// Compares memory with the accumulator.
    Scans,
}

/// What an instruction does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meaning {
    /// Its memory operands.
    pub memory: Vec<Operand>,
    /// Its definitions; none defines what another does.
    pub flows: Vec<Flow>,
    /// What its way on depends on, if there is more than one.
    pub decides: Option<Uses>,
    /// All register parts that it defines.
    pub defines: Parts,
    /// What it is to control.
    pub form: Form,
    /// Whether it could save or restore a register.
    pub shuttle: Option<Shuttle>,
    /// What it repeats, if it does.
    pub repeats: Option<StringOp>,
    /// Whether it makes the frame pointer from the stack pointer.
    pub frame: bool,
}

impl Span {
    /// Bytes of a general register.
    #[must_use]
    pub fn general(number: u8, from: u8, bytes: u8) -> Self {
        Self { side: Side::General(number), from: from.into(), bytes: bytes.into() }
    }

    /// Bytes of a vector register.
    #[must_use]
    pub fn vector(number: u8, from: u8, bytes: u8) -> Self {
        Self { side: Side::Vector(number), from: from.into(), bytes: bytes.into() }
    }

    /// Bytes of a memory operand.
    #[must_use]
    pub fn memory(slot: u8, from: u16, bytes: u16) -> Self {
        Self { side: Side::Memory(slot), from, bytes }
    }

    /// The register parts covered; none for memory.
    #[must_use]
    pub fn parts(&self) -> Parts {
        self.some_parts(u32::MAX)
    }

    /// The register parts that hold the bytes of the mask, bit 0 being the span's first byte.
    #[must_use]
    pub fn some_parts(&self, mask: u32) -> Parts {
        let all = (1u64 << self.bytes.min(32)) - 1;
        let bytes = ((u64::from(mask) & all) << self.from.min(32)) as u32;
        match self.side {
            Side::General(number) => Parts::of_general_bytes(number, bytes),
            Side::Vector(number) => Parts::of_vector_bytes(number, bytes),
            Side::Memory(_) => Parts::NONE,
        }
    }

    /// Which bytes of the span are in a set of register parts.
    #[must_use]
    pub fn bytes_in(&self, parts: &Parts) -> u32 {
        let bytes = match self.side {
            Side::General(number) => parts.general_bytes(number),
            Side::Vector(number) => parts.vector_bytes(number),
            Side::Memory(_) => 0,
        };
        let all = (1u64 << self.bytes.min(32)) - 1;
        ((u64::from(bytes) >> self.from.min(32)) & all) as u32
    }
}

impl Flow {
    /// Parts that hang on nothing.
    pub(super) fn constant(parts: Parts) -> Self {
        Self::Make { parts, write: None, uses: Uses::default(), how: How::Combined }
    }

    /// Parts made from uses.
    pub(super) fn combined(parts: Parts, uses: Uses) -> Self {
        Self::Make { parts, write: None, uses, how: How::Combined }
    }

    fn defines(&self) -> Parts {
        match self {
            Self::Copy { to, .. } => to.parts(),
            Self::Make { parts, .. } => *parts,
        }
    }
}

impl Uses {
    /// The values of these parts alone.
    pub(super) fn values(values: Parts) -> Self {
        Self { values, ..Self::default() }
    }
}

impl Meaning {
    /// Describes an instruction.
    pub fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Self {
        let info = factory.info(instruction);
        let access = std::array::from_fn(|operand| info.op_access(operand as u32));
        let mut memory = operands(info.used_memory());
        if instruction.mnemonic() == Mnemonic::Leave {
            // The frame pointer becomes the stack pointer, which is a position and not data.
            memory.iter_mut().for_each(|operand| operand.address = Parts::NONE);
        }
        let used = info.used_registers();
        let builder = MeaningBuilder { instruction, access, memory, used };
        let form = form(instruction);
        let repeats = repeated(instruction);
        let flows = if repeats.is_some() {
            Vec::new()
        } else {
            copies::flows(&builder)
                .or_else(|| vectors::flows(&builder))
                .or_else(|| implicit::flows(&builder))
                .unwrap_or_else(|| builder.general())
        };
        let defines = match repeats {
            Some(repeats) => repeats.defines(),
            None => flows.iter().fold(Parts::NONE, |all, flow| all | flow.defines()),
        };
        Self {
            decides: builder.decides(form),
            defines,
            form,
            shuttle: shuttle(instruction),
            repeats,
            frame: is_frame(instruction),
            flows,
            memory: builder.memory,
        }
    }

    /// The slots of memory that are written.
    pub fn writes(&self) -> impl Iterator<Item = u8> + '_ {
        (0u8..).zip(&self.memory).filter(|(_, operand)| operand.write).map(|(slot, _)| slot)
    }

    /// Register parts that it uses for anything.
    #[must_use]
    pub fn uses(&self) -> Parts {
        let of = |uses: &Uses| uses.values | uses.conditions;
        let flows = self.flows.iter().map(|flow| match flow {
            Flow::Copy { from, .. } => from.parts(),
            Flow::Make { uses, .. } => of(uses),
        });
        let decides = self.decides.iter().map(of);
        flows.chain(decides).fold(self.addresses(), |all, parts| all | parts)
    }

    /// Registers that form any of the addresses.
    #[must_use]
    pub fn addresses(&self) -> Parts {
        self.memory.iter().fold(Parts::NONE, |all, operand| all | operand.address)
    }
}

impl StringOp {
    /// Registers that a repeated string instruction defines.
    fn defines(self) -> Parts {
        let whole = |number| Parts::general(number, 0, 8);
        let (rax, rcx, rsi, rdi) = (whole(0), whole(1), whole(6), whole(7));
        let flags = Parts::CARRY
            | Parts::PARITY
            | Parts::AUXILIARY
            | Parts::ZERO
            | Parts::SIGN
            | Parts::OVERFLOW;
        match self {
            Self::Moves => rcx | rsi | rdi,
            Self::Stores => rcx | rdi,
            Self::Loads => rcx | rsi | rax,
            Self::Compares => rcx | rsi | rdi | flags,
            Self::Scans => rcx | rdi | flags,
        }
    }
}

pub(super) fn reads(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(access, A::Read | A::CondRead | A::ReadWrite | A::ReadCondWrite)
}

pub(super) fn writes(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(access, A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite)
}

/// Entries of tables are numbers, characters and pointers.
const LARGEST_ENTRY: usize = 8;

fn operands(used: &[UsedMemory]) -> Vec<Operand> {
    let mut list = Vec::with_capacity(2);
    for (write, accessed) in [(false, reads as fn(OpAccess) -> bool), (true, writes)] {
        for memory in used.iter().filter(|memory| accessed(memory.access())) {
            let narrow = memory.address_size() == CodeSize::Code32;
            let part = |register: Register| {
                let register = if narrow { register } else { register.full_register() };
                if register == Register::None { Parts::NONE } else { Parts::of(register) }
            };
            let index = memory.index();
            let index = if index.is_vector_register() { Parts::of(index) } else { part(index) };
            list.push(Operand {
                write,
                bytes: memory.memory_size().size() as u16,
                address: part(memory.base()) | index,
                entry: memory.memory_size().size() <= LARGEST_ENTRY
                    && memory.displacement() as i64 >= 0,
            });
        }
    }
    list
}

fn form(instruction: &Instruction) -> Form {
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => Form::Branch(instruction.near_branch_target()),
        FlowControl::UnconditionalBranch => Form::Jump(instruction.near_branch_target()),
        FlowControl::IndirectBranch => Form::IndirectJump,
        FlowControl::Call if instruction.mnemonic() == Mnemonic::Syscall => Form::Syscall,
        FlowControl::Call => Form::Call(instruction.near_branch_target()),
        FlowControl::IndirectCall => Form::IndirectCall,
        FlowControl::Return => Form::Return,
        FlowControl::Interrupt | FlowControl::Exception => Form::Stop,
        _ if instruction.mnemonic() == Mnemonic::Hlt => Form::Stop,
        _ => Form::Plain,
    }
}

fn repeated(instruction: &Instruction) -> Option<StringOp> {
    use Mnemonic as M;
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    if !repeats || !instruction.is_string_instruction() {
        return None;
    }
    match instruction.mnemonic() {
        M::Movsb | M::Movsw | M::Movsd | M::Movsq => Some(StringOp::Moves),
        M::Stosb | M::Stosw | M::Stosd | M::Stosq => Some(StringOp::Stores),
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => Some(StringOp::Loads),
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq => Some(StringOp::Compares),
        M::Scasb | M::Scasw | M::Scasd | M::Scasq => Some(StringOp::Scans),
        _ => None,
    }
}

/// A save pushes a register that callees preserve, a restore pops it. Moves to and from the stack
/// are more often locals.
fn shuttle(instruction: &Instruction) -> Option<Shuttle> {
    let preserved = |register: Register| {
        use Register as R;
        let kept = matches!(register, R::RBX | R::RBP | R::R12 | R::R13 | R::R14 | R::R15);
        kept.then(|| register.number() as u8)
    };
    match (instruction.mnemonic(), instruction.op0_kind()) {
        (Mnemonic::Push, OpKind::Register) => {
            preserved(instruction.op0_register()).map(Shuttle::Save)
        }
        (Mnemonic::Pop, OpKind::Register) => {
            preserved(instruction.op0_register()).map(Shuttle::Restore)
        }
        (Mnemonic::Leave, _) => Some(Shuttle::Restore(5)),
        _ => None,
    }
}

fn is_frame(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_register() == Register::RBP
        && instruction.op1_kind() == OpKind::Register
        && instruction.op1_register() == Register::RSP
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn meaning(code: &[u8]) -> Meaning {
        let instruction = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode();
        Meaning::of(&instruction, &mut InstructionInfoFactory::new())
    }

    fn all(register: Register) -> Parts {
        Parts::of(register)
    }

    /// What a definition of `parts` is made from: values, conditions, bytes read.
    fn uses_of(meaning: &Meaning, parts: Parts) -> (Parts, Parts, u32) {
        let (mut values, mut conditions, mut bytes) = (Parts::NONE, Parts::NONE, 0);
        for flow in &meaning.flows {
            match flow {
                Flow::Copy { to, from } => {
                    let mask = to.bytes_in(&parts);
                    values |= from.some_parts(mask);
                    if matches!(from.side, Side::Memory(_)) {
                        bytes += mask.count_ones();
                    }
                }
                Flow::Make { parts: made, uses, .. } if made.meets(&parts) => {
                    values |= uses.values;
                    conditions |= uses.conditions;
                    bytes += uses.reads.iter().map(|read| u32::from(read.bytes)).sum::<u32>();
                }
                Flow::Make { .. } => {}
            }
        }
        (values, conditions, bytes)
    }

    #[test]
    fn results_hang_on_the_operands_that_go_into_them() {
        use Register as R;
        let none = Parts::NONE;
        // code, what is asked for, values, conditions, bytes read
        let rows: &[(&[u8], Parts, Parts, Parts, u32)] = &[
            (&[0x31, 0xc0], all(R::RAX), none, none, 0), // xor eax,eax
            (&[0x31, 0xd8], all(R::EAX), all(R::EAX) | all(R::EBX), none, 0), // xor eax,ebx
            (&[0x19, 0xc0], all(R::EAX), Parts::CARRY, none, 0), // sbb eax,eax
            (&[0x48, 0x89, 0xd8], all(R::AH), all(R::BH), none, 0), // mov rax,rbx
            (&[0x89, 0xd8], Parts::general(0, 4, 4), none, none, 0), // mov eax,ebx
            (&[0x0f, 0xb6, 0xc3], all(R::AH), none, none, 0), // movzx eax,bl
            (&[0x0f, 0xbe, 0xc3], all(R::AH), all(R::BL), none, 0), // movsx eax,bl
            (&[0x48, 0x8b, 0x03], all(R::AL), none, none, 1), // mov rax,[rbx]
            (&[0x48, 0x03, 0x03], all(R::AL), all(R::RAX), none, 8), // add rax,[rbx]
            (&[0x48, 0x8d, 0x04, 0x0b], all(R::RAX), all(R::RBX) | all(R::RCX), none, 0), // lea
            (&[0x58], all(R::AL), none, none, 1),        // pop rax
            (&[0xc9], all(R::RBP), none, none, 8),       // leave
            (&[0x48, 0x0f, 0x44, 0xc3], all(R::RAX), all(R::RAX) | all(R::RBX), Parts::ZERO, 0), // cmove
            (&[0x0f, 0x94, 0xc0], all(R::AL), Parts::ZERO, none, 0), // sete al
            (&[0x48, 0xf7, 0x30], all(R::RDX), all(R::RAX) | all(R::RDX), none, 8), // div [rax]
            (&[0x48, 0x99], all(R::RDX), Parts::general(0, 4, 4), none, 0), // cqo
            (&[0x0f, 0x28, 0xc1], Parts::vector(0, 4, 4), Parts::vector(1, 4, 4), none, 0), // movaps
            (&[0xf2, 0x0f, 0x10, 0x03], Parts::vector(0, 8, 8), none, none, 0), // movsd xmm0,[rbx]
            (&[0xf2, 0x0f, 0x58, 0xc1], Parts::vector(0, 8, 8), none, none, 0), // addsd
            (
                &[0xf2, 0x0f, 0x58, 0xc1],
                Parts::vector(0, 0, 8),
                Parts::vector(0, 0, 8) | Parts::vector(1, 0, 8),
                none,
                0,
            ),
            (&[0xf2, 0x0f, 0x2a, 0xc0], Parts::vector(0, 0, 8), all(R::EAX), none, 0), // cvtsi2sd
            (
                &[0x66, 0x0f, 0xfe, 0xc1],
                Parts::vector(0, 4, 4),
                Parts::vector(0, 4, 4) | Parts::vector(1, 4, 4),
                none,
                0,
            ), // paddd
            (&[0x66, 0x0f, 0x6c, 0xc1], Parts::vector(0, 8, 8), Parts::vector(1, 0, 8), none, 0), // punpcklqdq
            (
                &[0x66, 0x0f, 0x70, 0xc1, 0x4e],
                Parts::vector(0, 0, 4),
                Parts::vector(1, 8, 4),
                none,
                0,
            ), // pshufd
            (&[0x66, 0x0f, 0xef, 0xc0], Parts::vector(0, 0, 16), none, none, 0), // pxor
        ];
        for (code, asked, values, conditions, bytes) in rows {
            let meaning = meaning(code);
            assert!(meaning.defines.meets(asked) || *values == none, "{code:02x?}");
            assert_eq!(uses_of(&meaning, *asked), (*values, *conditions, *bytes), "{code:02x?}");
        }
    }

    #[test]
    fn control_and_shuttles_are_known() {
        assert_eq!(meaning(&[0x53]).shuttle, Some(Shuttle::Save(3))); // push rbx
        assert_eq!(meaning(&[0x41, 0x5c]).shuttle, Some(Shuttle::Restore(12))); // pop r12
        assert_eq!(meaning(&[0x50]).shuttle, None); // push rax
        assert_eq!(meaning(&[0x74, 0x10]).form, Form::Branch(0x1012));
        assert_eq!(meaning(&[0x74, 0x10]).decides, Some(Uses::values(Parts::ZERO)));
        assert_eq!(meaning(&[0xff, 0x25, 0, 0, 0, 0]).decides, None); // jmp [rip+0]
        let table = meaning(&[0xff, 0x24, 0xc5, 0, 0, 0, 0]); // jmp [rax*8]
        assert_eq!(table.decides.map(|uses| uses.reads.len()), Some(1));
        assert_eq!(table.memory[0].address, all(Register::RAX));
        assert!(meaning(&[0x48, 0x89, 0xe5]).frame);
        assert_eq!(meaning(&[0xf3, 0xa4]).repeats, Some(StringOp::Moves));
    }

    #[test]
    fn the_stack_pointer_is_nowhere() {
        for code in [&[0x50][..], &[0x48, 0x83, 0xec, 8], &[0x48, 0x89, 0xe0], &[0xe8, 0, 0, 0, 0]]
        {
            let meaning = meaning(code);
            let rsp = Parts([0xf << 16, 0, 0, 0]);
            assert!(!meaning.defines.meets(&rsp), "{code:02x?}");
            assert!(!meaning.addresses().meets(&rsp), "{code:02x?}");
        }
    }
}
