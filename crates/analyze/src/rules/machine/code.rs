//! One instruction, compiled: what it does to cells, and through which pointers it goes to memory.
//! Done once for each translated instruction, so that following an execution decodes nothing.

use super::bitwise::{Bitwise, Constants};
use super::locals::UNKNOWN;
use super::registers;
use crate::semantics::{Flow, Form, How, Meaning, Parts, Side, Span, parts};
use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

/// General registers, then four cells for each of the sixteen vector registers.
pub const CELLS: usize = 16 + 16 * 4;
/// The cell of RSP.
pub const STACK_POINTER: u8 = 4;
/// The cell of RBP.
pub const FRAME_POINTER: u8 = 5;

/// Eight bytes of a register or of a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Of a register.
    Cell(u8),
    /// Of the memory operand of this number, from this byte on.
    Memory(u8, u16),
    /// Four bytes of it.
    Half(u8, u16),
    /// Something that carries nothing.
    Nothing,
    /// The stack pointer or frame pointer plus this.
    Stack(u8, i32),
    /// The stack pointer, where it becomes the frame pointer.
    Lowest,
}

/// What an instruction does to what cells carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The value moves unchanged.
    Copy(Place, Place),
    /// Four bytes of it do: they are no pointer any more.
    Number(Place, Place),
    /// A sum of two values.
    Sum(Place, Place, Place),
    /// A difference of two values.
    Difference(Place, Place, Place),
    /// One of two values.
    Choice(Place, Place, Place),
    /// A value that carries nothing is made.
    Make(Place),
    /// A constant, which may be the address of a variable.
    Address(Place, u64),
    /// The thread pointer.
    ThreadPointer(Place),
    /// A constant is added, which may make the address of a thread's own variable.
    Shift(Place, Place, i64),
    /// Two values are compared; nothing changes.
    Compare(Place, Place),
}

impl Action {
    /// What it changes, if it copies a number there.
    fn copied(self) -> Option<Place> {
        match self {
            Self::Number(to, _) => Some(to),
            _ => None,
        }
    }

    /// What it changes.
    fn target(self) -> Place {
        match self {
            Self::Copy(to, _)
            | Self::Number(to, _)
            | Self::Sum(to, ..)
            | Self::Difference(to, ..)
            | Self::Choice(to, ..)
            | Self::Make(to)
            | Self::Address(to, _)
            | Self::ThreadPointer(to)
            | Self::Shift(to, ..) => to,
            Self::Compare(..) => Place::Nothing,
        }
    }
}

/// How the address of a memory operand is formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Whether it is written.
    pub write: bool,
    /// Bytes.
    pub bytes: u16,
    /// The cell of the base.
    pub base: Option<u8>,
    /// The cell of the index, if it is not scaled.
    pub index: Option<u8>,
    /// Whether there is an index, scaled or not.
    pub indexed: bool,
    /// Whether it is counted from the thread pointer.
    pub own: bool,
    /// What is added.
    pub displacement: i64,
}

/// What an instruction does to the stack pointer beyond pushes, pops, calls and returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackMove {
    /// Nothing.
    None,
    /// Adds.
    By(i64),
    /// After a push it is where the push wrote.
    Push,
    /// After a pop it is this far behind where the pop read.
    Pop(u16),
    /// The frame pointer becomes the stack pointer.
    Enter,
    /// It becomes the frame pointer plus this.
    FromFrame(i64),
    /// Down, by an amount that only the run tells.
    MakeRoom,
    /// To somewhere that we do not follow.
    Lost,
}

/// Whether an instruction calls or returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Neither.
    None,
    /// It calls.
    Call,
    /// It returns.
    Return,
}

impl Transfer {
    fn of(form: Form) -> Self {
        match form {
            Form::Call(_) | Form::IndirectCall => Self::Call,
            Form::Return => Self::Return,
            _ => Self::None,
        }
    }
}

/// A compiled instruction.
#[derive(Clone, Debug)]
pub struct Code {
    /// Its address.
    pub pc: u64,
    /// Ticks of its superblock before it.
    pub ticks_before: u16,
    /// Number of its address in the chains.
    pub place: u32,
    /// What it does to cells. All sources are read before anything is written.
    pub actions: Vec<Action>,
    /// Its memory operands, in the order of the stream.
    pub pointers: Vec<Pointer>,
    /// Bytes of memory operands that carry nothing afterwards.
    pub wiped: Vec<u8>,
    /// Whether its store only saves a register.
    pub saves: bool,
    /// Whether it repeats a string move.
    pub moves: bool,
    /// Whether vectors are loaded: glibc reads past the end of strings on purpose.
    pub vector_read: bool,
    /// What it does to the stack pointer.
    pub stack: StackMove,
    /// What the values of its results depend on: looked at only where something was not written.
    pub meaning: Box<Meaning>,
    /// Whether it calls or returns.
    pub transfer: Transfer,
    /// Whether it calls, returns, or changes the stack pointer or the frame pointer.
    pub moves_stack: bool,
    /// Whether it overwrites the frame pointer with something else.
    pub loses_frame: bool,
    /// The registers that form its addresses or decide where it goes on, for
    /// [`super::registers::Registers::meets`].
    pub steers: u64,
    /// Whether what it reads decides where it goes on.
    pub steers_by_memory: bool,
    /// How many accesses it makes, unless it repeats.
    pub operands: u8,
    /// Whether it is a repeated string instruction.
    pub repeats: bool,
    /// The function it is in, if it takes an address in a frame: a number of
    /// [`super::locals::Locals`].
    pub function: u32,
    /// Whether it makes an address with an index.
    pub adds_index: bool,
    /// Whether it touches neither memory nor any cell: comparisons, branches.
    pub is_quiet: bool,
    /// Whether its results count as written though its operands are not: masks that tell where
    /// vectors differ.
    pub cleanses: bool,
    /// Whether it moves all of the processor's state.
    pub state: Transport,
    /// What it does to bits that nobody wrote, where that can be said bit by bit.
    pub bitwise: Option<Bitwise>,
    /// The registers whose bits matter to it, for [`super::registers::Registers::meets`].
    pub touched: u64,
}

/// Whether an instruction moves the processor's state to memory or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Neither.
    None,
    /// XSAVE and its like.
    Saves,
    /// XRSTOR and its like.
    Restores,
}

impl Transport {
    fn of(mnemonic: Mnemonic) -> Self {
        use Mnemonic as M;
        match mnemonic {
            M::Xsave | M::Xsave64 | M::Xsavec | M::Xsavec64 | M::Xsaveopt | M::Xsaveopt64 => {
                Self::Saves
            }
            M::Fxsave | M::Fxsave64 => Self::Saves,
            M::Xrstor | M::Xrstor64 | M::Fxrstor | M::Fxrstor64 => Self::Restores,
            _ => Self::None,
        }
    }
}

/// Compilers change bit fields of two bytes in a vector register: PINSRW, PAND, and of four bytes that MOVD takes out two are
/// stored. What stood above them in the lane, of which nothing smaller is known, then does not count.
fn forget_above(instruction: &Instruction, meaning: &mut Meaning) {
    let bytes = match instruction.mnemonic() {
        Mnemonic::Pinsrb => 1,
        Mnemonic::Pinsrw => 2,
        _ => return,
    };
    let Some((number, _)) = parts::vector(instruction.op0_register()) else { return };
    let lane = ((instruction.immediate8() & (16 / bytes - 1)) * bytes) & !3;
    for flow in &mut meaning.flows {
        if let Flow::Make { parts, uses, .. } = flow
            && parts.meets(&Parts::vector(number, 0, 16))
        {
            uses.values = uses.values.without(&Parts::vector(number, 0, 32));
            *parts = Parts::vector(number, lane, 4);
        }
    }
}

/// Compiles the instruction with these bytes; `constants` are those of the code before it.
#[must_use]
pub fn compile(
    pc: u64,
    bytes: &[u8],
    place: u32,
    constants: &mut Constants,
    factory: &mut InstructionInfoFactory,
) -> Code {
    let instruction = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
    let mut meaning = Meaning::of(&instruction, factory);
    forget_above(&instruction, &mut meaning);
    let bitwise = Bitwise::of(&instruction, &meaning.memory, constants);
    constants.follow(&instruction, &meaning.defines);
    let pointers = pointers(&instruction, factory);
    let transfer = Transfer::of(meaning.form);
    let stack = stack_move(&instruction);
    let loses_frame = meaning.form == Form::Plain
        && meaning.defines.general_bytes(FRAME_POINTER) != 0
        && stack != StackMove::Enter;
    let mut code = Code {
        pc,
        ticks_before: 0,
        place,
        actions: Vec::new(),
        wiped: Vec::new(),
        saves: matches!(meaning.shuttle, Some(crate::semantics::Shuttle::Save(_))),
        moves: meaning.repeats == Some(crate::semantics::StringOp::Moves),
        vector_read: instruction.op0_register().is_vector_register()
            || pointers.iter().any(|pointer| !pointer.write && pointer.bytes >= 16),
        stack,
        transfer,
        moves_stack: transfer != Transfer::None || stack != StackMove::None || loses_frame,
        loses_frame,
        steers: steers(&meaning),
        steers_by_memory: meaning.decides.as_ref().is_some_and(|uses| !uses.reads.is_empty()),
        operands: meaning.memory.len() as u8,
        repeats: meaning.repeats.is_some(),
        function: UNKNOWN,
        adds_index: instruction.mnemonic() == Mnemonic::Lea
            && instruction.memory_index() != Register::None,
        is_quiet: false,
        cleanses: cleanses(&instruction),
        state: Transport::of(instruction.mnemonic()),
        bitwise,
        touched: touched(&meaning),
        pointers,
        meaning: Box::new(meaning),
    };
    code.actions(&instruction);
    code.drop_overwritten();
    code.is_quiet = code.actions.is_empty()
        && !code.moves_stack
        && code.operands == 0
        && code.pointers.is_empty()
        && !code.repeats;
    code
}

/// The registers that form addresses or decide where it goes on.
fn steers(meaning: &Meaning) -> u64 {
    let decides = meaning.decides.as_ref().map(|uses| uses.values | uses.conditions);
    registers::touched(&decides.into_iter().fold(meaning.addresses(), |all, parts| all | parts))
}

/// The registers that an instruction reads or writes.
fn touched(meaning: &Meaning) -> u64 {
    let uses = meaning.flows.iter().map(|flow| match flow {
        Flow::Copy { from, .. } => from.parts(),
        Flow::Make { uses, .. } => uses.values | uses.conditions,
    });
    registers::touched(&uses.fold(meaning.defines, |all, parts| all | parts))
}

fn pointers(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Vec<Pointer> {
    let used = factory.info(instruction).used_memory();
    let mut list = Vec::with_capacity(2);
    for write in [false, true] {
        let accessed = |access: OpAccess| match access {
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => true,
            OpAccess::Write | OpAccess::CondWrite => write,
            OpAccess::Read | OpAccess::CondRead => !write,
            OpAccess::None | OpAccess::NoMemAccess => false,
        };
        for memory in used.iter().filter(|memory| accessed(memory.access())) {
            list.push(Pointer {
                write,
                bytes: memory.memory_size().size() as u16,
                base: general(memory.base()),
                index: general(memory.index()).filter(|_| memory.scale() == 1),
                indexed: memory.index() != Register::None,
                own: memory.segment() == Register::FS,
                displacement: memory.displacement() as i64,
            });
        }
    }
    list
}

/// The cell of a 64-bit general register.
fn general(register: Register) -> Option<u8> {
    (register.is_gpr64()).then(|| register.number() as u8)
}

fn stack_move(instruction: &Instruction) -> StackMove {
    use Mnemonic as M;
    let writes_stack_pointer = instruction.op_count() > 0
        && instruction.op_kind(0) == OpKind::Register
        && instruction.op_register(0) == Register::RSP;
    match instruction.mnemonic() {
        M::Push | M::Pushfq | M::Call => StackMove::Push,
        M::Pop if writes_stack_pointer => StackMove::Lost,
        M::Pop | M::Popfq => StackMove::Pop(8),
        M::Ret => StackMove::Pop(
            8 + if instruction.op_count() == 1 { instruction.immediate16() } else { 0 },
        ),
        M::Leave => StackMove::Pop(8),
        M::Sub if writes_stack_pointer && is_immediate(instruction, 1) => {
            StackMove::By((instruction.immediate(1) as i64).wrapping_neg())
        }
        M::Add if writes_stack_pointer && is_immediate(instruction, 1) => {
            StackMove::By(instruction.immediate(1) as i64)
        }
        M::Lea
            if writes_stack_pointer
                && instruction.memory_base() == Register::RSP
                && instruction.memory_index() == Register::None =>
        {
            StackMove::By(instruction.memory_displacement64() as i64)
        }
        M::Mov
            if instruction.op0_register() == Register::RBP
                && instruction.op1_register() == Register::RSP =>
        {
            StackMove::Enter
        }
        M::Lea
            if writes_stack_pointer
                && instruction.memory_base() == Register::RBP
                && instruction.memory_index() == Register::None =>
        {
            StackMove::FromFrame(instruction.memory_displacement64() as i64)
        }
        M::Mov if writes_stack_pointer && instruction.op1_register() == Register::RBP => {
            StackMove::FromFrame(0)
        }
        M::Sub if writes_stack_pointer && instruction.op1_kind() == OpKind::Register => {
            StackMove::MakeRoom
        }
        M::Cmp | M::Test => StackMove::None,
        _ if writes_stack_pointer => StackMove::Lost,
        _ => StackMove::None,
    }
}

fn is_immediate(instruction: &Instruction, operand: u32) -> bool {
    instruction.op_count() > operand && instruction.try_immediate(operand).is_ok()
}

fn cleanses(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        instruction.mnemonic(),
        M::Pmovmskb
            | M::Vpmovmskb
            | M::Movmskps
            | M::Movmskpd
            | M::Vmovmskps
            | M::Vmovmskpd
            | M::Ptest
            | M::Vptest
            | M::Pcmpistri
            | M::Vpcmpistri
            | M::Pcmpestri
            | M::Vpcmpestri
    )
}

impl Code {
    /// The constants that it takes for addresses.
    pub fn constants(&self) -> impl Iterator<Item = u64> + '_ {
        let taken = self.actions.iter().filter_map(|action| match action {
            Action::Address(_, address) => Some(*address),
            _ => None,
        });
        let indexed = |pointer: &&Pointer| pointer.base.is_none() && pointer.indexed;
        let elements = self.pointers.iter().filter(indexed);
        taken.chain(elements.map(|pointer| pointer.displacement as u64))
    }

    /// Whether it takes an address in a frame.
    #[must_use]
    pub fn takes_frame_address(&self) -> bool {
        let stack = |place: &Place| matches!(place, Place::Stack(..) | Place::Lowest);
        let taken = self.actions.iter().any(|action| match action {
            Action::Sum(_, left, right) | Action::Difference(_, left, right) => {
                stack(left) || stack(right)
            }
            _ => false,
        });
        let frame = |pointer: &Pointer| {
            pointer.indexed && matches!(pointer.base, Some(STACK_POINTER | FRAME_POINTER))
        };
        taken || self.pointers.iter().any(frame)
    }

    fn actions(&mut self, instruction: &Instruction) {
        if self.meaning.repeats.is_some() {
            self.wiped =
                (0u8..).zip(&self.pointers).filter(|(_, p)| p.write).map(|(n, _)| n).collect();
            return;
        }
        if let Some(action) = stack_address(instruction).or_else(|| constant(instruction)) {
            self.actions.push(action);
            return;
        }
        if let Some(chosen) = self.chosen(instruction) {
            self.actions = chosen;
            return;
        }
        if let Some(compared) = compared(instruction, &self.pointers) {
            self.actions.push(compared);
            return;
        }
        let arithmetic = self.arithmetic(instruction);
        for flow in self.meaning.flows.clone() {
            match flow {
                Flow::Copy { to, from } => self.copies(to, from),
                Flow::Make { parts, write, how, .. } => {
                    if let (How::Offset, Some(action)) = (how, arithmetic) {
                        self.actions.push(action);
                        // Anything else it makes are flags.
                        continue;
                    }
                    for cell in 0..CELLS as u8 {
                        let touched = match cell {
                            0..16 => parts.general_bytes(cell) != 0,
                            _ => {
                                parts.vector_bytes((cell - 16) / 4) >> ((cell - 16) % 4 * 8) & 0xff
                                    != 0
                            }
                        };
                        if touched && cell != STACK_POINTER {
                            self.actions.push(Action::Make(Place::Cell(cell)));
                        }
                    }
                    if let Some(Span { side: Side::Memory(slot), .. }) = write {
                        self.makes_memory(slot);
                    }
                }
            }
        }
    }

    /// A stored value that is not a copy: eight bytes of it have a chain that begins here.
    /// A number of four bytes carries no block, but it has a chain.
    fn copies_half(&mut self, to: Place, from: Place) {
        let half = |place| match place {
            Place::Memory(slot, at) => Place::Half(slot, at),
            other => other,
        };
        if let Place::Memory(slot, _) = to {
            self.wiped.push(slot);
        }
        self.actions.push(Action::Number(half(to), half(from)));
    }

    /// Of several results for one place the last one counts, as all sources are read before.
    fn drop_overwritten(&mut self) {
        // Upper halves that become zero are no result of their own.
        let copied: Vec<Place> = self.actions.iter().filter_map(|action| action.copied()).collect();
        self.actions.retain(|action| !matches!(action, Action::Make(to) if copied.contains(to)));
        let targets: Vec<Place> = self.actions.iter().map(|action| action.target()).collect();
        let mut index = 0;
        self.actions.retain(|_| {
            index += 1;
            !targets[index..].contains(&targets[index - 1])
        });
    }

    fn makes_memory(&mut self, slot: u8) {
        match self.pointers.get(slot as usize) {
            Some(pointer) if pointer.bytes == 8 => {
                self.actions.push(Action::Make(Place::Memory(slot, 0)));
            }
            _ => self.wiped.push(slot),
        }
    }

    /// Additions and subtractions of 64 bits, in which a pointer keeps its block.
    fn arithmetic(&self, instruction: &Instruction) -> Option<Action> {
        use Mnemonic as M;
        if instruction.mnemonic() == M::Lea {
            return lea(instruction);
        }
        let to = operand(instruction, 0, &self.pointers, true)?;
        let left = operand(instruction, 0, &self.pointers, false)?;
        let right = match instruction.op_count() {
            1 => Place::Nothing,
            _ if is_immediate(instruction, 1) => Place::Nothing,
            _ => operand(instruction, 1, &self.pointers, false)?,
        };
        match instruction.mnemonic() {
            M::Add if right == Place::Nothing => {
                Some(Action::Shift(to, left, instruction.immediate(1) as i64))
            }
            M::Add | M::Inc | M::Dec | M::Xadd => Some(Action::Sum(to, left, right)),
            M::Sub => Some(Action::Difference(to, left, right)),
            // Alignment keeps the block; a mask in a register is as good as a constant.
            M::And | M::Or => Some(Action::Sum(to, left, right)),
            _ => None,
        }
    }

    /// Which of two values is taken is not in the stream.
    fn chosen(&self, instruction: &Instruction) -> Option<Vec<Action>> {
        use Mnemonic as M;
        const RESULT: Place = Place::Cell(super::RESULT as u8);
        let wide = |index, write| operand(instruction, index, &self.pointers, write);
        let either = |to, left, right| Action::Choice(to, left, right);
        match instruction.mnemonic() {
            M::Cmpxchg => {
                let (to, old, new) = (wide(0, true)?, wide(0, false)?, wide(1, false)?);
                Some(vec![either(to, new, old), either(RESULT, RESULT, old)])
            }
            M::Cmpxchg16b => {
                let halves = [(0, 0, 3), (8, 2, 1)]; // rdx:rax, rcx:rbx
                let of = |(offset, compared, new)| {
                    let slot = |write| self.pointers.iter().position(|p| p.write == write);
                    let to = Place::Memory(slot(true)? as u8, offset);
                    let old = Place::Memory(slot(false)? as u8, offset);
                    let (compared, new) = (Place::Cell(compared), Place::Cell(new));
                    Some([either(to, new, old), either(compared, compared, old)])
                };
                let actions: Option<Vec<_>> = halves.into_iter().map(of).collect();
                actions.map(|actions| actions.concat())
            }
            _ if instruction.op_count() == 2
                && instruction.condition_code() != ConditionCode::None =>
            {
                let (to, from) = (wide(0, true)?, wide(1, false)?);
                Some(vec![either(to, to, from)])
            }
            _ => None,
        }
    }

    /// Byte-for-byte copies, in pieces of eight bytes; what is narrower carries nothing.
    fn copies(&mut self, to: Span, from: Span) {
        let mut done = 0;
        while done < to.bytes {
            let target = place(to, done);
            let whole = to.bytes - done >= 8;
            match (target, place(from, done)) {
                (Some(target), Some(source)) if whole => {
                    self.actions.push(Action::Copy(target, source))
                }
                (Some(target), Some(source)) if to.bytes == 4 => self.copies_half(target, source),
                (Some(Place::Memory(slot, _)), _) => self.wiped.push(slot),
                (Some(target), _) => self.actions.push(Action::Make(target)),
                (None, _) => self.partial(to),
            }
            done += 8;
        }
    }

    /// Part of a cell is overwritten.
    fn partial(&mut self, to: Span) {
        match to.side {
            Side::General(number) if number != STACK_POINTER => {
                self.actions.push(Action::Make(Place::Cell(number)));
            }
            Side::General(_) => {}
            Side::Vector(number) if number < 16 => {
                let lane = (to.from / 8).min(3) as u8;
                self.actions.push(Action::Make(Place::Cell(16 + number * 4 + lane)));
            }
            Side::Vector(_) => {}
            Side::Memory(slot) => self.wiped.push(slot),
        }
    }
}

/// The eight bytes of a span that begin `offset` bytes into it; none if they are split.
fn place(span: Span, offset: u16) -> Option<Place> {
    let at = span.from + offset;
    match span.side {
        Side::Memory(slot) => Some(Place::Memory(slot, at)),
        Side::General(number) if at == 0 => Some(Place::Cell(number)),
        Side::Vector(number) if at.is_multiple_of(8) && at < 32 && number < 16 => {
            Some(Place::Cell(16 + number * 4 + (at / 8) as u8))
        }
        _ => None,
    }
}

fn operand(
    instruction: &Instruction,
    index: u32,
    pointers: &[Pointer],
    write: bool,
) -> Option<Place> {
    match instruction.op_kind(index) {
        OpKind::Register => {
            let cell = general(instruction.op_register(index))?;
            (cell != STACK_POINTER || !write).then_some(())?;
            Some(match cell {
                STACK_POINTER => Place::Stack(cell, 0),
                _ => Place::Cell(cell),
            })
        }
        OpKind::Memory => {
            let slot = pointers.iter().position(|pointer| pointer.write == write)?;
            (pointers[slot].bytes == 8).then_some(Place::Memory(slot as u8, 0))
        }
        _ => None,
    }
}

/// A comparison of two values that may be pointers.
fn compared(instruction: &Instruction, pointers: &[Pointer]) -> Option<Action> {
    let compares = instruction.mnemonic() == Mnemonic::Cmp && instruction.op_count() == 2;
    let own = |index| {
        operand(instruction, index, pointers, false)
            .filter(|place| matches!(place, Place::Cell(_) | Place::Memory(..)))
    };
    compares.then(|| Some(Action::Compare(own(0)?, own(1)?)))?
}

/// `mov r, rsp` takes the address of a local variable.
fn stack_address(instruction: &Instruction) -> Option<Action> {
    let takes = instruction.mnemonic() == Mnemonic::Mov
        && instruction.op_count() == 2
        && instruction.op_kind(1) == OpKind::Register
        && instruction.op1_register() == Register::RSP
        && instruction.op_kind(0) == OpKind::Register;
    let to = general(instruction.op0_register()).filter(|_| takes)?;
    let source = if to == FRAME_POINTER { Place::Lowest } else { Place::Stack(STACK_POINTER, 0) };
    Some(Action::Sum(Place::Cell(to), source, Place::Nothing))
}

/// A constant or an address in the program that is put into a register.
fn constant(instruction: &Instruction) -> Option<Action> {
    let to = instruction.op0_register().full_register();
    let to = Place::Cell(general(to).filter(|cell| *cell != STACK_POINTER)?);
    let wide = instruction.op0_register().size() >= 4;
    match instruction.mnemonic() {
        Mnemonic::Mov
            if instruction.op1_kind() == OpKind::Memory
                && instruction.op0_register().is_gpr64()
                && instruction.memory_segment() == Register::FS
                && instruction.memory_base() == Register::None
                && instruction.memory_index() == Register::None
                && instruction.memory_displacement64() == 0 =>
        {
            Some(Action::ThreadPointer(to))
        }
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
            Some(Action::Address(to, instruction.ip_rel_memory_address()))
        }
        Mnemonic::Mov if wide && is_immediate(instruction, 1) => {
            Some(Action::Address(to, instruction.immediate(1)))
        }
        _ => None,
    }
}

fn lea(instruction: &Instruction) -> Option<Action> {
    let to = general(instruction.op0_register()).filter(|cell| *cell != STACK_POINTER)?;
    let base = general(instruction.memory_base());
    let index = general(instruction.memory_index());
    let scaled = instruction.memory_index_scale() != 1;
    let cell = |cell: Option<u8>| cell.map_or(Place::Nothing, Place::Cell);
    let displacement = instruction.memory_displacement64() as i32;
    let base = match base {
        Some(base @ (STACK_POINTER | FRAME_POINTER)) => Place::Stack(base, displacement),
        other => cell(other),
    };
    let has_index = index.is_some();
    let index = if scaled { Place::Nothing } else { cell(index) };
    if let (Place::Cell(_), false) = (base, has_index) {
        return Some(Action::Shift(Place::Cell(to), base, i64::from(displacement)));
    }
    Some(Action::Sum(Place::Cell(to), base, index))
}
