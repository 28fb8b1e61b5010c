//! An instruction whose description is being made: what the rules ask of it.

use super::implicit;
use super::meaning::{Flow, Form, How, Operand, Span, Uses, reads, writes};
use super::parts::{self, Parts};
use iced_x86::{Instruction, Mnemonic, OpAccess, OpKind, Register};

/// An instruction being described.
pub(super) struct MeaningBuilder<'a> {
    pub instruction: &'a Instruction,
    /// Access of each explicit operand.
    pub access: [OpAccess; 5],
    pub memory: Vec<Operand>,
    pub used: &'a [iced_x86::UsedRegister],
}

impl MeaningBuilder<'_> {
    /// The slots that are read, whole.
    pub fn reads(&self) -> Vec<Span> {
        self.slots(false)
    }

    /// The slots that are written, whole.
    pub fn writes(&self) -> Vec<Span> {
        self.slots(true)
    }

    pub(super) fn slots(&self, write: bool) -> Vec<Span> {
        let slots = (0u8..).zip(&self.memory).filter(|(_, operand)| operand.write == write);
        slots.map(|(slot, operand)| Span::memory(slot, 0, operand.bytes)).collect()
    }

    pub fn same_registers(&self, left: u32, right: u32) -> bool {
        let instruction = self.instruction;
        instruction.op_count() > left.max(right)
            && instruction.op_kind(left) == OpKind::Register
            && instruction.op_kind(right) == OpKind::Register
            && instruction.op_register(left) == instruction.op_register(right)
    }

    /// The register that is operand `index`.
    pub fn register(&self, index: u32) -> Option<Register> {
        (index < self.instruction.op_count() && self.instruction.op_kind(index) == OpKind::Register)
            .then(|| self.instruction.op_register(index))
    }

    /// Register parts that are read as values: explicit operands, and what the instruction reads
    /// without naming it.
    pub fn values(&self) -> Parts {
        let explicit = (0..self.instruction.op_count())
            .filter(|operand| reads(self.access[*operand as usize]))
            .filter_map(|operand| self.register(operand))
            .fold(Parts::NONE, |all, register| all | Parts::of(register));
        explicit | self.implicit(false) | Parts::flags(self.instruction.rflags_read())
    }

    /// Registers that are not operands and are read (or written). What forms an address is not
    /// a value.
    pub(super) fn implicit(&self, write: bool) -> Parts {
        let instruction = self.instruction;
        let named = |register: Register| {
            let full = register.full_register();
            let operand = (0..instruction.op_count())
                .filter_map(|operand| self.register(operand))
                .any(|operand| operand.full_register() == full);
            let addresses = instruction.memory_base().full_register() == full
                || instruction.memory_index().full_register() == full;
            operand || addresses
        };
        let accessed = if write { writes } else { reads };
        let implied = implicit::registers(instruction, write);
        let found = self.used.iter().filter(|used| accessed(used.access()));
        found
            .map(|used| used.register())
            .filter(|register| !named(*register))
            .chain(implied.iter().copied())
            .fold(Parts::NONE, |all, register| all | Parts::of(register))
    }

    /// Register parts that are written, and those of them that become zero.
    pub(super) fn written(&self) -> (Parts, Parts) {
        let (mut made, mut zeroed) = (Parts::NONE, Parts::NONE);
        for operand in 0..self.instruction.op_count() {
            let Some(register) = self.register(operand) else { continue };
            if writes(self.access[operand as usize]) {
                made |= Parts::of(register);
                zeroed |= self.zeroed_by(register);
            }
        }
        (made | self.implicit(true), zeroed)
    }

    /// What becomes zero when this register is written.
    pub fn zeroed_by(&self, register: Register) -> Parts {
        match (parts::general(register), parts::vector(register)) {
            (Some((number, _, 4)), _) => Parts::general(number, 4, 4),
            (_, Some((number, 16))) if self.is_vex() => Parts::vector(number, 16, 16),
            _ => Parts::NONE,
        }
    }

    pub fn is_vex(&self) -> bool {
        self.instruction.code().encoding() != iced_x86::EncodingKind::Legacy
    }

    /// Flags that become anything but constants, and those that become constants.
    pub fn flags(&self) -> (Parts, Parts) {
        let instruction = self.instruction;
        let made = instruction.rflags_written() | instruction.rflags_undefined();
        let constant = instruction.rflags_cleared() | instruction.rflags_set();
        (Parts::flags(made), Parts::flags(constant & !made))
    }

    /// Everything that is written is made from everything that is read.
    pub fn general(&self) -> Vec<Flow> {
        let mut values = self.values();
        let (flags, constant) = self.flags();
        if self.shifts_by_register() {
            // A count of zero leaves the flags as they are.
            values |= flags;
        }
        let mut reads = self.reads();
        if self.is_zero_idiom() {
            values = Parts::flags(self.instruction.rflags_read());
            reads.clear();
        }
        let uses = Uses { values, reads, ..Uses::default() };
        let (made, zeroed) = self.written();
        let how = self.how();
        let parts = (made | flags).without(&zeroed);
        let writes = self.writes();
        let mut flows = Vec::new();
        if !parts.is_empty() || !writes.is_empty() {
            let write = writes.first().copied();
            flows.push(Flow::Make { parts, write, uses: uses.clone(), how });
        }
        for write in writes.into_iter().skip(1) {
            let write = Some(write);
            flows.push(Flow::Make { parts: Parts::NONE, write, uses: uses.clone(), how });
        }
        let constant = (constant | zeroed).without(&parts);
        if !constant.is_empty() {
            flows.push(Flow::constant(constant));
        }
        flows
    }

    pub(super) fn how(&self) -> How {
        use Mnemonic as M;
        match self.instruction.mnemonic() {
            M::Add | M::Sub | M::Inc | M::Dec | M::Lea | M::Xadd | M::And | M::Or => How::Offset,
            _ => How::Combined,
        }
    }

    pub(super) fn shifts_by_register(&self) -> bool {
        use Mnemonic as M;
        let last = self.instruction.op_count().saturating_sub(1);
        matches!(
            self.instruction.mnemonic(),
            M::Shl
                | M::Shr
                | M::Sar
                | M::Sal
                | M::Rol
                | M::Ror
                | M::Rcl
                | M::Rcr
                | M::Shld
                | M::Shrd
        ) && self.register(last) == Some(Register::CL)
    }

    /// Whether the result is the same whatever the operands hold.
    pub(super) fn is_zero_idiom(&self) -> bool {
        use Mnemonic as M;
        match self.instruction.mnemonic() {
            M::Xor
            | M::Sub
            | M::Sbb
            | M::Cmp
            | M::Pxor
            | M::Xorps
            | M::Xorpd
            | M::Psubb
            | M::Psubw
            | M::Psubd
            | M::Psubq
            | M::Pcmpeqb
            | M::Pcmpeqw
            | M::Pcmpeqd
            | M::Pcmpeqq => self.same_registers(0, 1),
            M::Vpxor
            | M::Vxorps
            | M::Vxorpd
            | M::Vpsubb
            | M::Vpsubw
            | M::Vpsubd
            | M::Vpsubq
            | M::Vpcmpeqb
            | M::Vpcmpeqw
            | M::Vpcmpeqd
            | M::Vpcmpeqq => self.same_registers(1, 2),
            M::And => self.immediate() == Some(0),
            M::Or => self.immediate() == Some(u64::MAX),
            _ => false,
        }
    }

    pub(super) fn immediate(&self) -> Option<u64> {
        let kind = self.instruction.op1_kind();
        let is_register = matches!(kind, OpKind::Register | OpKind::Memory);
        (self.instruction.op_count() == 2 && !is_register).then(|| self.instruction.immediate(1))
    }

    /// What the way on depends on.
    pub(super) fn decides(&self, form: Form) -> Option<Uses> {
        let instruction = self.instruction;
        let linkage = || {
            // A jump through a word of the linker's is as good as direct.
            instruction.is_ip_rel_memory_operand() && instruction.mnemonic() == Mnemonic::Jmp
        };
        match form {
            Form::Branch(_) => Some(Uses::values(self.values())),
            Form::IndirectJump if linkage() => None,
            Form::IndirectJump | Form::IndirectCall => {
                let values = self.register(0).map_or(Parts::NONE, Parts::of);
                Some(Uses { values, reads: self.reads(), ..Uses::default() })
            }
            Form::Return => Some(Uses { reads: self.reads(), ..Uses::default() }),
            _ => None,
        }
    }
}
