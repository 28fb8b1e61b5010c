//! Registers that a translation puts aside for observation, and what is observed through them:
//! records of events, and tests against the shadow.

use super::{Exit, ExitKind, Lower, SLOT_SHADOW, SLOT_TEST};
use crate::runner::cpu::{self, Cpu};
use crate::runner::screens::Stage;
use crate::runner::translate::facts::Set;
use crate::runner::translate::instrument::Instrumentation;
use crate::runner::translate::map::{Spill, Spills};
use crate::runner::translate::observe::{self, Observer};
use std::mem::offset_of;

impl Lower<'_> {
    /// Spills that hold from head to exit.
    pub(in crate::runner) fn reserved(&self) -> Spills {
        let mut spills = Spills::default();
        if let Some(observer) = &self.observer {
            spills = spills
                .with(observer.record, observe::SLOT_RECORD)
                .with(observer.scratch, observe::SLOT_SCRATCH);
            if let Some(value) = observer.value {
                spills = spills.with(value, observe::SLOT_VALUE);
            }
        }
        if let Some(tests) = &self.tests {
            spills = spills.with(tests.base, SLOT_SHADOW).with(tests.scratch, SLOT_TEST);
        }
        spills
    }

    /// Whether registers are put aside for observation.
    pub(super) fn reserves(&self) -> bool {
        self.observer.is_some() || self.tests.is_some()
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

    /// Ways into the body. An indirect branch comes with [`Shared::common_spills`] put aside, the
    /// dispatcher and most exits with nothing, and exits that keep what this translation needs
    /// come to `inner`.
    pub(super) fn entries(&mut self) {
        self.indirect_body = self.emit.offset();
        let (common_spills, own) = (self.shared.common_spills, self.reserved());
        if common_spills != own {
            self.give_back(common_spills);
        }
        if common_spills != own || !self.reserves() {
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
        if self.reserves() && self.shared.common_spills == self.reserved() {
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
        self.screen_accesses();
        if self.observer.as_ref().is_some_and(Observer::repeats) {
            self.note_repeating();
        }
    }

    pub(super) fn observe_after(&mut self) {
        if let Some(observer) = &mut self.observer {
            let guest = &self.superblock.guests[self.index as usize];
            observer.after(&mut self.emit, guest);
        }
    }

    pub(in crate::runner) fn fields(&self) -> u16 {
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
    pub(in crate::runner) fn suspect(&mut self, index: u16, fields: u16, stage: Stage) {
        self.index = index;
        self.spills = self.reserved();
        self.note(false);
        let number = self.number_exit(index, fields, false);
        self.close_record(number, fields);
        self.give_back(self.reserved());
        let jump = self.emit.jump_hole();
        let stub = self.stub(number);
        self.emit.fill_to(jump, u64::from(stub));
        let kind = ExitKind::Suspect(self.guest().pc(), stage);
        self.exits.push(Exit { kind, patch: 0, stub, kept: None, executed: index });
    }

    /// Registers that are not free for a moment: the guest's and the observer's.
    pub(super) fn taken_registers(&self, uses: Set) -> Set {
        self.reserved().iter().fold(uses, |taken, spill| taken.with(spill.register))
    }
}

/// What is put aside at every indirect branch and return: what a translation with all of it puts
/// aside if all registers are free.
pub fn common_spills(instrumentation: Instrumentation) -> Spills {
    let mut free = observe::PREFERENCE.into_iter();
    let mut next = || free.next().expect("there are more registers than uses");
    let mut spills = Spills::default();
    if instrumentation.records() {
        let (scratch, record) = (next(), next());
        spills = spills.with(record, observe::SLOT_RECORD).with(scratch, observe::SLOT_SCRATCH);
        if instrumentation.records_values() {
            spills = spills.with(next(), observe::SLOT_VALUE);
        }
    }
    if instrumentation.tests.is_some() {
        let (base, scratch) = (next(), next());
        spills = spills.with(base, SLOT_SHADOW).with(scratch, SLOT_TEST);
    }
    spills
}
