//! What observation adds to a superblock: registers put aside at its head, records and tests before
//! and after instructions, registers given back at its exits.

use super::exits::Pending;
use super::{Lower, SLOT_CHECK, SLOT_RCX, SLOT_SHADOW};
use crate::runner::cpu::reg::RCX;
use crate::runner::cpu::{self, Cpu};
use crate::runner::translate::accesses::Form;
use crate::runner::translate::filter::Check;
use crate::runner::translate::map::Spills;
use crate::runner::translate::observe::{self, Observer};
use events::shape::Segment;
use std::mem::offset_of;

/// The shadow has one byte for so many address bits less.
const SHADOW_SHIFT: u32 = events::plan::GRANULE.trailing_zeros();

impl Lower<'_> {
    /// Spills that hold from head to exit.
    pub(super) fn reserved(&self) -> Spills {
        let mut spills = Spills::default();
        if let Some(observer) = &self.observer {
            spills = spills
                .with(observer.record, observe::SLOT_RECORD)
                .with(observer.scratch, observe::SLOT_SCRATCH);
        }
        if let Some(screen) = &self.screen {
            spills = spills.with(screen.base, SLOT_SHADOW);
            if screen.owns_rcx {
                spills = spills.with(RCX, SLOT_RCX);
            }
        }
        spills
    }

    /// Whether registers are put aside for observation.
    pub(super) fn reserves(&self) -> bool {
        self.observer.is_some() || self.screen.is_some()
    }

    /// Puts registers aside for observation.
    pub(super) fn head(&mut self) {
        if let Some(observer) = &self.observer {
            let (record, scratch) = (observer.record, observer.scratch);
            self.spill(record, observe::SLOT_RECORD);
            self.spill(scratch, observe::SLOT_SCRATCH);
            self.emit.load_cell(record, cpu::field(offset_of!(Cpu, events)));
        }
        if let Some(screen) = &self.screen {
            let (base, owns_rcx) = (screen.base, screen.owns_rcx);
            self.spill(base, SLOT_SHADOW);
            if owns_rcx {
                self.spill(RCX, SLOT_RCX);
            }
            self.emit.load_cell(base, cpu::field(offset_of!(Cpu, shadow)));
        }
    }

    pub(super) fn observe_before(&mut self) {
        if let Some(observer) = &mut self.observer {
            let guest = &self.superblock.guests[self.index as usize];
            observer.before(&mut self.emit, guest, self.index);
            let repeats = observer.repeats();
            // Nothing that the guest can see has changed: a boundary again. PUSHF above all must
            // not be reached by single steps, or it would show the trap flag.
            self.spills = self.reserved();
            self.note(true);
            if repeats {
                self.note_repeating();
            }
        }
        self.test_before();
    }

    /// Tests accesses against the shadow.
    pub(super) fn test_before(&mut self) {
        let Some(screen) = &self.screen else { return };
        let (base, owns_rcx) = (screen.base, screen.owns_rcx);
        let checks = screen.before(self.index);
        for check in &checks {
            if !owns_rcx {
                self.spill(RCX, SLOT_CHECK);
            }
            self.shadow_address(check, base);
            self.emit.load_sum(RCX, RCX, base, check.width);
            self.emit.jump_if_rcx_zero(5);
            let hole = self.emit.jump_hole();
            let (index, fields) = (self.index, self.fields());
            self.pending.push((hole, Pending::Suspect { index, fields }));
            if !owns_rcx {
                self.unspill(RCX, SLOT_CHECK);
            }
        }
        if !checks.is_empty() {
            self.spills = self.reserved();
            self.note(true);
        }
    }

    /// Where the shadow of tested bytes is, less its base, to rcx.
    pub(super) fn shadow_address(&mut self, check: &Check, base: u8) {
        match check.form {
            Form::Constant(address) if check.segment == Segment::Flat => {
                self.emit.load_constant(RCX, address >> SHADOW_SHIFT);
                return;
            }
            Form::Constant(address) => self.emit.load_constant(RCX, address),
            Form::Base(register, displacement) => {
                self.emit.lea(RCX, register, displacement as i32);
            }
            Form::Sum(register, index, scale, displacement) => {
                self.emit.lea_scaled(RCX, register, index, scale, displacement);
            }
        }
        if check.segment != Segment::Flat {
            self.emit.segment_base(base, check.segment == Segment::Gs);
            self.emit.lea_sum(RCX, RCX, base);
            self.emit.load_cell(base, cpu::field(offset_of!(Cpu, shadow)));
        }
        self.emit.shift_right(RCX, base);
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

    /// Completes the record with the number of an exit and gives registers back; rcx stays as it
    /// is if it holds the target of an indirect branch.
    pub(super) fn foot(&mut self, exit: u32, fields: u16, target_in_rcx: bool) {
        if let Some(observer) = &self.observer {
            let (record, scratch) = (observer.record, observer.scratch);
            self.emit.store_imm32(record, 0, exit);
            self.emit.lea(record, record, Observer::record_bytes(fields));
            self.emit.store_cell(cpu::field(offset_of!(Cpu, events)), record);
            self.unspill(record, observe::SLOT_RECORD);
            self.unspill(scratch, observe::SLOT_SCRATCH);
        }
        if let Some(screen) = &self.screen {
            let (base, owns_rcx) = (screen.base, screen.owns_rcx);
            self.unspill(base, SLOT_SHADOW);
            if owns_rcx && !target_in_rcx {
                self.unspill(RCX, SLOT_RCX);
            }
        }
    }
}
