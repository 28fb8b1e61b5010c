//! Weaves observation into a translation.
//!
//! Two registers that the superblock does not use are put aside at its head: one points to the
//! record under construction, the other is scratch. Addresses go to fixed offsets of the record;
//! the number of the exit is written, and the pointer moved on, when the superblock is left. There
//! is no bounds check: a record that runs past the buffer hits a guard page, and the signal handler
//! moves it to the next buffer.
//!
//! Values are loaded from where the instruction will read, or has written, through a third register.
//!
//! An address is only stored if it cannot be derived from one that is there already: registers are
//! followed through pushes, pops, additions of constants and copies.

use super::accesses::{Accesses, Form, Operand};
use super::emit::Emit;
use super::facts::Set;
use super::superblock::{Guest, Superblock};
use crate::runner::cpu::reg::{RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP};
use events::record::FIELD;
use events::shape::{self, Access, Segment, Shape, Source};
use iced_x86::{Mnemonic, OpKind};

/// Slot of the register that points to the record.
pub const SLOT_RECORD: u8 = 3;
/// Slot of the scratch register.
pub const SLOT_SCRATCH: u8 = 4;
/// Slot of the register that values go through.
pub const SLOT_VALUE: u8 = 8;
/// Longest value that is stored.
const LONGEST_VALUE: u16 = 32;
/// Bytes before the first field.
const HEADER: i32 = 4;

/// What is known while a superblock is written.
pub struct Observer {
    /// Register that points to the record.
    pub record: u8,
    /// Scratch register.
    pub scratch: u8,
    /// Register that values go through, if they are stored.
    pub value: Option<u8>,
    /// Whether addresses are stored.
    memory: bool,
    /// A write whose value will be at the address in the scratch register: which access.
    written: Option<usize>,
    fields: u16,
    known: [Option<(u16, i64)>; 16],
    sums: Vec<(Form, u16)>,
    /// The facts that go to the consumer.
    pub shape: Shape,
    repeat: Option<u16>,
}

/// Registers that inserted code has uses for of its own.
pub const NEVER_RESERVED: [u8; 5] = [RAX, RCX, RDX, RSP, RSI];

/// All others, those first that compilers use least: translations that put the same ones aside
/// need not give them back to each other. Operands relative to the pc want the low ones free.
pub const PREFERENCE: [u8; 11] = [11, 10, 9, 8, 15, 14, 13, 12, RBP, RBX, RDI];

/// The registers that a superblock leaves alone besides those in `taken`, best first.
pub fn free(superblock: &Superblock, taken: Set) -> impl Iterator<Item = u8> {
    let used = superblock.guests.iter().fold(taken.0, |used, guest| used | guest.facts.uses.0);
    PREFERENCE.into_iter().filter(move |register| used & 1 << register == 0)
}

impl Observer {
    /// For a superblock that leaves two registers alone, or three if values are stored.
    pub fn new(superblock: &Superblock, first_exit: u32, memory: bool, values: bool) -> Self {
        let mut free = free(superblock, Set::default());
        let mut next = || free.next().expect("the superblock leaves registers alone");
        let (scratch, record) = (next(), next());
        Self {
            record,
            scratch,
            value: values.then(next),
            memory,
            written: None,
            fields: 0,
            known: [None; 16],
            sums: Vec::new(),
            shape: Shape { first_exit, ..Shape::default() },
            repeat: None,
        }
    }

    /// Fields stored so far.
    pub fn fields(&self) -> u16 {
        self.fields
    }

    /// Bytes of a record with so many fields.
    pub fn record_bytes(fields: u16) -> i32 {
        HEADER + fields as i32 * FIELD as i32
    }

    /// Stores what is needed before an instruction executes.
    pub fn before(&mut self, emit: &mut Emit, guest: &Guest, index: u16) {
        self.shape.instructions.push(shape::Instruction {
            pc: guest.pc(),
            length: guest.instruction.len() as u8,
            kind: kind(guest),
            bytes: guest.bytes,
        });
        self.shape.fields_before.push(self.fields);
        if !self.memory {
            return;
        }
        match &guest.accesses {
            Accesses::List(list) => {
                for operand in list {
                    let source = self.source(emit, operand);
                    self.add(index, operand.write, operand.size, operand.segment, source);
                    if has_value(operand) && !operand.write {
                        self.value_before(emit, operand);
                    }
                }
                if let Some(operand) = written(guest, list) {
                    self.prepare_value_after(emit, operand);
                }
            }
            Accesses::Repeat { size, source, compares, writes, narrow, segment } => {
                let field = self.store(emit, RCX);
                self.store(emit, RSI);
                self.store(emit, RDI);
                self.repeat = Some(field);
                let sides =
                    [(*source, false, true), (*compares, false, false), (*writes, true, false)];
                for (_, write, from_source) in sides.into_iter().filter(|(there, ..)| *there) {
                    let segment = if from_source { *segment } else { Segment::Flat };
                    self.shape.accesses.push(Access {
                        index,
                        write,
                        segment,
                        from_source,
                        narrow: *narrow,
                        size: *size,
                        source: Source::Repeat { field },
                        value: None,
                    });
                }
            }
            Accesses::Explicit => self.add(index, false, 0, Segment::Flat, Source::Explicit),
        }
    }

    /// Whether the instruction that was just prepared is a repeated string instruction.
    pub fn repeats(&self) -> bool {
        self.repeat.is_some()
    }

    /// Stores what is only known once it has executed, and forgets what it changed.
    pub fn after(&mut self, emit: &mut Emit, guest: &Guest) {
        if self.repeat.take().is_some() {
            self.store(emit, RCX);
            let moves_source = matches!(
                guest.instruction.mnemonic(),
                Mnemonic::Lodsb | Mnemonic::Lodsw | Mnemonic::Lodsd | Mnemonic::Lodsq
            );
            self.store(emit, if moves_source { RSI } else { RDI });
        }
        if let Some(access) = self.written.take() {
            let Access { size, segment, .. } = self.shape.accesses[access];
            self.shape.accesses[access].value = self.store_value(emit, segment, size);
        }
        if self.memory {
            self.follow(guest);
        }
    }

    /// Stores the value that the access which was added last will read.
    fn value_before(&mut self, emit: &mut Emit, operand: &Operand) {
        if self.value.is_some() {
            self.load_address(emit, operand);
            let value = self.store_value(emit, operand.segment, operand.size);
            self.shape.accesses.last_mut().expect("just added").value = value;
        }
    }

    /// Keeps the address of the access which was added last, a write, for when it is done.
    fn prepare_value_after(&mut self, emit: &mut Emit, operand: &Operand) {
        if self.value.is_some() {
            self.load_address(emit, operand);
            self.written = Some(self.shape.accesses.len() - 1);
        }
    }

    /// The address of an operand, less its segment, to the scratch register.
    fn load_address(&mut self, emit: &mut Emit, operand: &Operand) {
        match operand.form {
            Form::Constant(address) => emit.load_constant(self.scratch, address),
            Form::Base(base, displacement) => emit.lea(self.scratch, base, displacement as i32),
            Form::Sum(base, index, scale, displacement) => {
                emit.lea_scaled(self.scratch, base, index, scale, displacement);
            }
        }
    }

    /// Copies what is at the address in the scratch register to fields. Each store may run over
    /// into the next field, which is stored later.
    fn store_value(&mut self, emit: &mut Emit, segment: Segment, size: u16) -> Option<u16> {
        let value = self.value?;
        let field = self.fields;
        let fields = size.div_ceil(FIELD as u16);
        let behind = Self::record_bytes(field + fields);
        if size.is_multiple_of(8) {
            // The last bytes of the record must be touched, or it could end behind the buffer with
            // nobody having noticed.
            emit.store(self.record, behind - 8, value);
        }
        let mut done = 0;
        while done < size {
            let bytes = match size - done {
                8.. => 8,
                4..=7 => 4,
                2..=3 => 2,
                _ => 1,
            };
            match segment {
                Segment::Flat => {}
                Segment::Fs => emit.raw(&[0x64]),
                Segment::Gs => emit.raw(&[0x65]),
            }
            emit.load_bytes(value, self.scratch, i32::from(done), bytes);
            emit.store(self.record, Self::record_bytes(field) + i32::from(done), value);
            done += u16::from(bytes);
        }
        self.fields += fields;
        Some(field)
    }

    fn add(&mut self, index: u16, write: bool, size: u16, segment: Segment, source: Source) {
        let (from_source, narrow) = (false, false);
        let value = None;
        let access = Access { index, write, segment, from_source, narrow, size, source, value };
        self.shape.accesses.push(access);
    }

    /// Where the consumer finds an address: derived if possible, else stored now.
    fn source(&mut self, emit: &mut Emit, operand: &Operand) -> Source {
        match operand.form {
            Form::Constant(address) => Source::Constant(address),
            Form::Base(base, displacement) => {
                let (field, offset) = match self.known[base as usize] {
                    Some(known) => known,
                    None => {
                        let known = (self.store(emit, base), 0);
                        self.known[base as usize] = Some(known);
                        known
                    }
                };
                Source::Field { field, offset: offset + displacement }
            }
            form @ Form::Sum(base, index, scale, displacement) => {
                if let Some((_, field)) = self.sums.iter().find(|(sum, _)| *sum == form) {
                    return Source::Field { field: *field, offset: 0 };
                }
                emit.lea_scaled(self.scratch, base, index, scale, displacement);
                let field = self.store(emit, self.scratch);
                self.sums.push((form, field));
                Source::Field { field, offset: 0 }
            }
        }
    }

    fn store(&mut self, emit: &mut Emit, register: u8) -> u16 {
        let field = self.fields;
        self.fields += 1;
        emit.store(self.record, Self::record_bytes(field), register);
        field
    }

    /// Registers after an instruction, in terms of fields.
    fn follow(&mut self, guest: &Guest) {
        let old = self.known;
        let written = guest.facts.writes;
        self.sums.retain(|(form, _)| match form {
            Form::Sum(base, index, ..) => {
                !written.has(*index) && base.is_none_or(|base| !written.has(base))
            }
            _ => true,
        });
        for register in 0..16u8 {
            if written.has(register) {
                self.known[register as usize] = None;
            }
        }
        if let Some((to, from, by)) = derived(guest) {
            self.known[to as usize] =
                old[from as usize].map(|(field, offset)| (field, offset + by));
        }
    }
}

/// Whether the value of an access is stored.
fn has_value(operand: &Operand) -> bool {
    let reachable = match operand.form {
        Form::Base(_, displacement) => i32::try_from(displacement).is_ok(),
        _ => true,
    };
    reachable && operand.size <= LONGEST_VALUE
}

/// The write whose value is stored once the instruction has executed. A call leaves at once, and
/// what it writes is known.
fn written<'a>(guest: &Guest, list: &'a [Operand]) -> Option<&'a Operand> {
    use super::facts::Flow;
    let leaves = !matches!(guest.facts.flow, Flow::Next);
    let mut writes = list.iter().filter(|operand| operand.write);
    let last = writes.next_back().filter(|operand| has_value(operand));
    if leaves || writes.next().is_some() { None } else { last }
}

/// `to = from + constant`, if that is what an instruction does to a whole register.
pub fn derived(guest: &Guest) -> Option<(u8, u8, i64)> {
    let instruction = &guest.instruction;
    if guest.facts.writes.has(RSP) && instruction.is_stack_instruction() {
        let moved = instruction.stack_pointer_increment();
        let pops_into_it = instruction.mnemonic() == Mnemonic::Pop
            && super::facts::number(instruction.op0_register()) == Some(RSP);
        if moved != 0 && !pops_into_it {
            return Some((RSP, RSP, i64::from(moved)));
        }
    }
    constant_change(guest)
}

/// `to = from + constant`, for instructions that do just that to whole registers.
fn constant_change(guest: &Guest) -> Option<(u8, u8, i64)> {
    let instruction = &guest.instruction;
    let to = instruction.op0_register();
    if !to.is_gpr64() {
        return None;
    }
    let to = super::facts::number(to)?;
    let immediate = || {
        let is_immediate = !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory);
        is_immediate.then(|| instruction.immediate(1) as i64)
    };
    match instruction.mnemonic() {
        Mnemonic::Add => Some((to, to, immediate()?)),
        Mnemonic::Sub => Some((to, to, immediate()?.checked_neg()?)),
        Mnemonic::Inc => Some((to, to, 1)),
        Mnemonic::Dec => Some((to, to, -1)),
        Mnemonic::Mov if instruction.op1_kind() == OpKind::Register => {
            let from = instruction.op1_register();
            from.is_gpr64().then_some(())?;
            Some((to, super::facts::number(from)?, 0))
        }
        Mnemonic::Lea if instruction.memory_index() == iced_x86::Register::None => {
            let from = instruction.memory_base();
            from.is_gpr64().then_some(())?;
            let by = instruction.memory_displacement64() as i64;
            Some((to, super::facts::number(from)?, by))
        }
        _ => None,
    }
}

fn kind(guest: &Guest) -> u8 {
    use super::facts::Flow;
    match guest.facts.flow {
        Flow::Branch(_) | Flow::ShortBranch(_) => shape::KIND_BRANCH,
        Flow::Jump(_) | Flow::IndirectJump => shape::KIND_JUMP,
        Flow::Call(_) | Flow::IndirectCall => shape::KIND_CALL,
        Flow::Return => shape::KIND_RETURN,
        Flow::Syscall => shape::KIND_SYSCALL,
        _ => shape::KIND_PLAIN,
    }
}
