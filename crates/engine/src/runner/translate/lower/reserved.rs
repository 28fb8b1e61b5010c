//! Registers that a translation puts aside for observation, and what is observed through them:
//! records of events, and tests against the shadow.

use super::exits::Pending;
use super::{Exit, ExitKind, Lower, SLOT_SHADOW, SLOT_TEST};
use crate::runner::cpu::{self, Cpu};
use crate::runner::layout;
use crate::runner::translate::accesses::Form;
use crate::runner::translate::emit::Condition;
use crate::runner::translate::facts::Set;
use crate::runner::translate::filter::{self, Check};
use crate::runner::translate::map::{Spill, Spills};
use crate::runner::translate::observe::{self, Observer};
use events::Plan;
use events::shape::Segment;
use std::mem::offset_of;

impl Lower<'_> {
    /// Spills that hold from head to exit.
    pub(super) fn reserved(&self) -> Spills {
        let mut spills = Spills::default();
        if let Some(observer) = &self.observer {
            spills = spills
                .with(observer.record, observe::SLOT_RECORD)
                .with(observer.scratch, observe::SLOT_SCRATCH);
            if let Some(value) = observer.value {
                spills = spills.with(value, observe::SLOT_VALUE);
            }
        }
        if let Some(screen) = &self.screen {
            spills = spills.with(screen.base, SLOT_SHADOW).with(screen.scratch, SLOT_TEST);
        }
        spills
    }

    /// Whether registers are put aside for observation.
    pub(super) fn reserves(&self) -> bool {
        self.observer.is_some() || self.screen.is_some()
    }

    /// Puts registers aside, and loads what they are for.
    fn put_aside(&mut self, registers: Spills) {
        for Spill { register, slot } in registers.iter() {
            self.spill(register, slot);
        }
        for Spill { register, slot } in registers.iter() {
            match slot {
                observe::SLOT_RECORD => {
                    self.emit.load_cell(register, cpu::field(offset_of!(Cpu, events)));
                }
                SLOT_SHADOW => self.emit.load_cell(register, cpu::field(offset_of!(Cpu, shadow))),
                _ => {}
            }
        }
    }

    /// Gives registers back.
    pub(super) fn give_back(&mut self, registers: Spills) {
        for Spill { register, slot } in registers.iter() {
            self.unspill(register, slot);
        }
    }

    /// Puts aside what is to be, when something else is.
    pub(super) fn exchange(&mut self, now: Spills, wanted: Spills) {
        if now != wanted {
            self.give_back(now);
            self.put_aside(wanted);
        }
    }

    /// Ways into the body. An indirect branch comes with [`Shared::standing`] put aside, the
    /// dispatcher and most exits with nothing, and exits that keep what this translation needs
    /// come to `inner`.
    pub(super) fn entries(&mut self) {
        self.landing = self.emit.offset();
        let (standing, own) = (self.shared.standing, self.reserved());
        if standing != own {
            self.give_back(standing);
        }
        if standing != own || !self.reserves() {
            self.enter_with_nothing();
        }
        self.inner = self.emit.offset();
        self.spills = own;
        self.note(true);
    }

    fn enter_with_nothing(&mut self) {
        self.body = self.emit.offset();
        self.spills = Spills::default();
        self.note(true);
        self.put_aside(self.reserved());
    }

    /// The way in with nothing put aside, if it is the unusual one: out of line.
    pub(super) fn unusual_entry(&mut self) {
        if self.reserves() && self.shared.standing == self.reserved() {
            self.index = 0;
            self.enter_with_nothing();
            let back = u64::from(self.emit.offset() - self.inner);
            let _ = self.emit.jump(self.emit.here() - back);
        }
    }

    pub(super) fn observe_before(&mut self) {
        if let Some(observer) = &mut self.observer {
            let guest = &self.superblock.guests[self.index as usize];
            observer.before(&mut self.emit, guest, self.index);
            // Nothing that the guest can see has changed: a boundary again. PUSHF above all must
            // not be reached by single steps, or it would show the trap flag.
            self.spills = self.reserved();
            self.note(true);
        }
        self.test_before();
        if self.observer.as_ref().is_some_and(Observer::repeats) {
            self.note_repeating();
        }
    }

    /// Tests accesses against the shadow.
    fn test_before(&mut self) {
        let Some(screen) = &self.screen else { return };
        let (base, scratch) = (screen.base, screen.scratch);
        if self.guest().accesses.is_plain_repeat() {
            self.test_repeat(base, scratch);
            return;
        }
        let checks = screen.before(self.index);
        for check in &checks {
            let place = self.shadow_of(check, base, scratch);
            if check.keeps_flags {
                match place {
                    Shadowed::At(at) => self.emit.load_bytes(scratch, base, at, check.width),
                    Shadowed::Beside(at) => {
                        self.emit.load_sum(scratch, scratch, base, at, check.width);
                    }
                }
                if check.width > 2 {
                    let bits = cpu::field(offset_of!(Cpu, shadow_bits));
                    self.emit.select_bits(scratch, scratch, bits);
                }
                self.emit.load_word(scratch, scratch, layout::LAST_WORD);
                continue;
            }
            match place {
                Shadowed::At(at) => self.emit.compare_at(base, at, check.width),
                Shadowed::Beside(at) => self.emit.compare_sum(scratch, base, at, check.width),
            }
            let hole = self.emit.branch_hole(Condition::NOT_EQUAL);
            let (index, fields) = (self.index, self.fields());
            self.pending.push((hole, Pending::Suspect { index, fields }));
        }
        let compared = self.compare_owners();
        if compared || !checks.is_empty() {
            self.spills = self.reserved();
            self.note(true);
        }
    }

    /// Finds the shadow of tested bytes.
    fn shadow_of(&mut self, check: &Check, base: u8, scratch: u8) -> Shadowed {
        let shift = SHADOW_SHIFT;
        // Of pointers that are not aligned, the granule of the first byte only the sum tells.
        let exact = |displacement: i64| {
            self.plan.heap.is_empty() || (displacement as u64).is_multiple_of(events::plan::GRANULE)
        };
        let mut source = scratch;
        let mut beside = 0;
        match check.form {
            Form::Constant(address) if check.segment == Segment::Flat => {
                if let Ok(at) = i32::try_from(address >> shift) {
                    return Shadowed::At(at);
                }
                self.emit.load_constant(scratch, address >> shift);
                return Shadowed::Beside(0);
            }
            Form::Constant(address) => self.emit.load_constant(scratch, address),
            Form::Base(register, displacement)
                if check.segment == Segment::Flat
                    && filter::is_split(displacement)
                    && exact(displacement) =>
            {
                (source, beside) = (register, (displacement >> shift) as i32);
            }
            Form::Base(register, displacement) => {
                self.emit.lea(scratch, register, displacement as i32);
            }
            Form::Sum(register, index, scale, displacement) => {
                self.emit.lea_scaled(scratch, register, index, scale, displacement);
            }
        }
        if check.segment != Segment::Flat {
            self.emit.segment_base(base, check.segment == Segment::Gs);
            self.emit.lea_sum(scratch, scratch, base);
            self.emit.load_cell(base, cpu::field(offset_of!(Cpu, shadow)));
        }
        self.emit.shift_right(scratch, source, base);
        Shadowed::Beside(beside)
    }

    pub(super) fn observe_after(&mut self) {
        if let Some(observer) = &mut self.observer {
            let guest = &self.superblock.guests[self.index as usize];
            observer.after(&mut self.emit, guest);
        }
    }

    pub(super) fn fields(&self) -> u16 {
        self.observer.as_ref().map_or(0, Observer::fields)
    }

    /// Completes the record with the number of an exit.
    pub(super) fn close_record(&mut self, exit: u32, fields: u16) {
        if let Some(observer) = &self.observer {
            let record = observer.record;
            self.emit.store_imm32(record, 0, exit);
            self.emit.lea(record, record, Observer::record_bytes(fields));
            self.emit.store_cell(cpu::field(offset_of!(Cpu, events)), record);
        }
    }

    /// The instruction has not begun; nobody needs the flags.
    pub(super) fn suspect(&mut self, index: u16, fields: u16) {
        self.index = index;
        self.spills = self.reserved();
        self.note(false);
        let number = self.number_exit(index, fields, false);
        self.close_record(number, fields);
        self.give_back(self.reserved());
        let jump = self.emit.jump_hole();
        let stub = self.stub(number);
        self.emit.fill_to(jump, u64::from(stub));
        let kind = ExitKind::Suspect(self.guest().pc());
        self.exits.push(Exit { kind, patch: 0, stub, kept: None, executed: index });
    }

    /// Registers that are not free for a moment: the guest's and the observer's.
    pub(super) fn taken_registers(&self, uses: Set) -> Set {
        self.reserved().iter().fold(uses, |taken, spill| taken.with(spill.register))
    }
}

/// Where the shadow of tested bytes is.
#[derive(Clone, Copy)]
enum Shadowed {
    /// So far from the table's base.
    At(i32),
    /// So far from the sum of that and the scratch register.
    Beside(i32),
}

/// What is put aside at every indirect branch and return: what a translation under the plan puts
/// aside if all registers are free.
pub fn standing(plan: &Plan) -> Spills {
    let mut free = observe::PREFERENCE.into_iter();
    let mut next = || free.next().expect("there are more registers than uses");
    let mut spills = Spills::default();
    if plan.weaves() {
        let (scratch, record) = (next(), next());
        spills = spills.with(record, observe::SLOT_RECORD).with(scratch, observe::SLOT_SCRATCH);
        if plan.values {
            spills = spills.with(next(), observe::SLOT_VALUE);
        }
    }
    if plan.filter.is_some() {
        let (base, scratch) = (next(), next());
        spills = spills.with(base, SLOT_SHADOW).with(scratch, SLOT_TEST);
    }
    spills
}

/// The shadow has one byte for so many address bits less.
const SHADOW_SHIFT: u32 = events::plan::GRANULE.trailing_zeros();
