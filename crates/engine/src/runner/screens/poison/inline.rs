//! Code that poisoned replays need besides: frames get their marks where functions make them, and what is compared is looked at first.
//!
//! ```text
//! sub rsp, 24                             cmp dword [rbx + 8], MARK; je suspect
//! mov dword [rsp], MARK                   cmp eax, MARK; je suspect
//! …                                       cmp [rbx + 8], eax
//! mov dword [rsp + 20], MARK
//! ```
//!
//! Whoever compares overwrites the flags, so that they are free before.

use crate::runner::cpu::reg::{RBP, RSP};
use crate::runner::screens::Stage;
use crate::runner::translate::accesses::{Accesses, Form, Operand};
use crate::runner::translate::emit::Condition;
use crate::runner::translate::facts::number;
use crate::runner::translate::lower::{Lower, Pending};
use crate::runner::translate::superblock::{Guest, Role};
use events::plan::POISON;
use events::shape::Segment;
use iced_x86::{Instruction, Mnemonic, OpKind};
use std::ops::Range;

/// What a function may use below its stack pointer.
const RED_ZONE: i32 = 128;
/// Bytes at either end of a large frame that are marked.
const END: i32 = 128;
const MARK: i32 = POISON as i32;
const MARK_BYTES: i32 = 4;
/// Instructions between a load and the comparison of what was loaded.
const BACK: usize = 4;

/// Something that is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    Register(u8),
    /// Four bytes of memory, of which but one or two may be compared.
    Place(Form),
}

impl Lower<'_> {
    /// Looks at what the instruction compares.
    pub(in crate::runner) fn look_at_compared(&mut self) {
        let guest = self.guest();
        if !self.instrumentation.poisons || self.untested || guest.role != Role::Plain {
            return;
        }
        if !compares_whole(&guest.instruction) {
            return;
        }
        for compared in self.compared() {
            self.look_at(compared);
        }
    }

    fn look_at(&mut self, compared: Compared) {
        match compared {
            Compared::Register(register) => self.emit.compare_low(register, MARK),
            Compared::Place(Form::Base(base, by)) => self.emit.compare_dword(base, by as i32, MARK),
            Compared::Place(Form::Sum(base, index, scale, by)) => {
                self.emit.compare_dword_sum(base, index, scale, by, MARK);
            }
            Compared::Place(Form::Constant(_)) => return,
        }
        let hole = self.emit.branch_hole(Condition::EQUAL);
        let (index, fields) = (self.index, self.fields());
        self.pending.push((hole, Pending::Suspect { index, fields, stage: Stage::Operands }));
    }

    /// What the instruction compares.
    fn compared(&self) -> Vec<Compared> {
        let guest = self.guest();
        let instruction = &guest.instruction;
        let mut compared: Vec<_> = read(guest).into_iter().map(Compared::Place).collect();
        let mut add = |one: Compared| {
            if !compared.contains(&one) {
                compared.push(one);
            }
        };
        let operands = 0..instruction.op_count();
        for operand in operands.filter(|it| instruction.op_kind(*it) == OpKind::Register) {
            let register = instruction.op_register(operand);
            let Some(known) = number(register) else { continue };
            if register.size() >= 4 {
                add(Compared::Register(known));
            }
            self.loaded(known).into_iter().for_each(|place| add(Compared::Place(place)));
        }
        compared
    }

    /// Where the byte or two that a register holds were loaded from just before, if whatever that depends on
    /// is unchanged.
    fn loaded(&self, register: u8) -> Option<Form> {
        let index = self.index as usize;
        let before = &self.superblock.guests[index.saturating_sub(BACK)..index];
        let at = before.iter().rposition(|guest| guest.facts.writes.has(register))?;
        let load = &before[at];
        let mnemonic = load.instruction.mnemonic();
        if !matches!(mnemonic, Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx) {
            return None;
        }
        let Accesses::List(list) = &load.accesses else { return None };
        let [operand] = &list[..] else { return None };
        let form = around(operand).filter(|_| operand.size < 4 && !operand.write)?;
        let changes =
            |register: u8| before[at..].iter().any(|guest| guest.facts.writes.has(register));
        let stays = match form {
            Form::Base(base, _) => !changes(base),
            Form::Sum(base, index, ..) => !changes(index) && !base.is_some_and(changes),
            Form::Constant(_) => false,
        };
        let plain = before[at..].iter().all(|guest| guest.role == Role::Plain);
        (stays && plain).then_some(form)
    }

    /// Marks the room that the instruction has made on the stack.
    pub(in crate::runner) fn poison_frame(&mut self) {
        if !self.instrumentation.poisons {
            return;
        }
        let Some(room) = self.room() else { return };
        let (start, end) = (room.start, room.end);
        let ends = match end - start {
            0..=256 => [start..end, end..end],
            _ => [start..start + END, end - END..end],
        };
        for place in ends.into_iter().flat_map(|end| end.step_by(MARK_BYTES as usize)) {
            self.emit.store_imm32(RSP, place, POISON);
        }
    }

    /// Relative to the stack pointer, what nobody can have written yet.
    fn room(&self) -> Option<Range<i32>> {
        let guest = self.guest();
        if guest.role != Role::Plain {
            return None;
        }
        if let Some(bytes) = made(guest) {
            return Some(0..bytes);
        }
        // A function that calls nobody need not move its stack pointer.
        let next = self.superblock.guests.get(self.index as usize + 1)?;
        (makes_frame(guest) && made(next).is_none()).then_some(-RED_ZONE..0)
    }
}

/// Whether all bits of what is compared count. Of bit fields some may be written, and nobody sees which.
fn compares_whole(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Cmp => true,
        Mnemonic::Test => matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory),
        _ => false,
    }
}

/// Bytes that the instruction takes off the stack pointer.
fn made(guest: &Guest) -> Option<i32> {
    let instruction = &guest.instruction;
    let by = match instruction.op1_kind() {
        OpKind::Immediate8to64 | OpKind::Immediate32to64 => instruction.immediate(1) as i64,
        _ => return None,
    };
    if number(instruction.op0_register()) != Some(RSP) || !instruction.op0_register().is_gpr64() {
        return None;
    }
    let bytes = match instruction.mnemonic() {
        Mnemonic::Sub => by,
        Mnemonic::Add => by.checked_neg()?,
        _ => return None,
    };
    i32::try_from(bytes).ok().filter(|bytes| *bytes > 0 && bytes % MARK_BYTES == 0)
}

/// Whether this is `mov rbp, rsp`.
fn makes_frame(guest: &Guest) -> bool {
    let instruction = &guest.instruction;
    let is = |register: iced_x86::Register, wanted| {
        register.is_gpr64() && number(register) == Some(wanted)
    };
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op1_kind() == OpKind::Register
        && is(instruction.op0_register(), RBP)
        && is(instruction.op1_register(), RSP)
}

/// What an instruction reads.
fn read(guest: &Guest) -> Vec<Form> {
    let Accesses::List(list) = &guest.accesses else { return Vec::new() };
    list.iter().filter(|operand| !operand.write).filter_map(around).collect()
}

/// The four bytes that an operand begins in, if its register is a multiple of four.
fn around(operand: &Operand) -> Option<Form> {
    if operand.segment != Segment::Flat || operand.size > 8 {
        return None;
    }
    let small = operand.size < 4;
    match operand.form {
        // Bytes of a text, which are compared all the time.
        Form::Base(_, 0) if small => None,
        Form::Base(base, by) => {
            let by = if small { by & !3 } else { by };
            i32::try_from(by).is_ok().then_some(Form::Base(base, by))
        }
        Form::Sum(..) if small => None,
        form @ Form::Sum(..) => Some(form),
        Form::Constant(_) => None,
    }
}
