//! Records about the place where a superblock starts: a probed function is entered, or may have
//! returned. They are appended before anything else, through rcx and rdx.
//!
//! From the record to the end of the first instruction there is no boundary: a signal waits until what
//! the stream says is about to happen has happened.

use super::exits::Pending;
use super::{Exit, ExitKind, Lower, SLOT_RCX, SLOT_RDX, slot};
use crate::runner::cpu::reg::{RAX, RCX, RDI, RDX, RSI, RSP};
use crate::runner::cpu::{self, Cpu};
use crate::runner::follow::{self, Follow};
use crate::runner::sites;
use events::record::{BACK_BYTES, ENTER_BYTES, Kind};
use std::mem::offset_of;

impl Lower<'_> {
    /// Appends what there is to say of the place.
    pub(super) fn marks(&mut self) {
        let marks = self.superblock.marks;
        if !marks.enters && !marks.returns {
            return;
        }
        self.spill(RCX, SLOT_RCX);
        self.spill(RDX, SLOT_RDX);
        if marks.enters {
            self.know_site();
        }
        match (marks.follows, marks.deed, marks.site) {
            (true, Some(deed), _) => return self.enter_allocation(deed),
            (true, None, Some(site)) => return self.leave_allocation(site),
            (true, None, None) => return self.follow(),
            (false, ..) => {}
        }
        let record = self.observer.as_ref().map_or(RCX, |observer| observer.record);
        if self.observer.is_none() {
            self.emit.load_cell(RCX, cpu::field(offset_of!(Cpu, events)));
        }
        if marks.returns {
            self.mark(record, Kind::Back);
            self.emit.store(record, 12, RSP);
            self.emit.store(record, 20, RAX);
            self.close_mark(record, BACK_BYTES);
        }
        if marks.enters {
            self.mark(record, Kind::Enter);
            self.emit.load(RDX, RSP, 0);
            self.emit.store(record, 12, RDX);
            self.emit.store(record, 20, RSP);
            self.emit.store(record, 28, RDI);
            self.emit.store(record, 36, RSI);
            self.emit.load_cell(RDX, slot(SLOT_RDX));
            self.emit.store(record, 44, RDX);
            self.emit.load_cell(RDX, slot(SLOT_RCX));
            self.emit.store(record, 52, RDX);
            self.emit.store(record, 60, 8);
            self.emit.store(record, 68, 9);
            self.close_mark(record, ENTER_BYTES);
        }
        self.unspill(RDX, SLOT_RDX);
        self.unspill(RCX, SLOT_RCX);
        self.announced = true;
    }

    /// Calls the engine, which may change what is tested against.
    pub(in crate::runner) fn follow(&mut self) {
        let field = |offset: usize| cpu::field(offset_of!(Cpu, follow) + offset);
        self.emit.store_cell(field(offset_of!(Follow, back)), RDX);
        self.unspill(RDX, SLOT_RDX);
        self.unspill(RCX, SLOT_RCX);
        let aside = self.reserved();
        for (number, register) in [RDI, RSI, RDX, RCX, 8, 9].into_iter().enumerate() {
            let cell = field(offset_of!(Follow, arguments) + 8 * number);
            let mut held = register;
            if let Some(spill) = aside.iter().find(|spill| spill.register == register) {
                held = self.tests.as_ref().map_or(register, |tests| tests.scratch);
                self.emit.load_cell(held, slot(spill.slot));
            }
            self.emit.store_cell(cell, held);
        }
        self.emit.store_cell(field(offset_of!(Follow, stack)), RSP);
        self.emit.store_cell(field(offset_of!(Follow, value)), RAX);
        let place = field(offset_of!(Follow, place));
        self.emit.store_cell_imm32(place, self.superblock.pc as u32);
        self.emit.store_cell_imm32(place + 4, (self.superblock.pc >> 32) as u32);
        let what = follow::what(self.superblock.marks);
        self.emit.store_cell_imm32(field(offset_of!(Follow, what)), what);
        // Behind this store and the jump.
        let resume = self.emit.here() as u32 + 10 + 5;
        self.emit.store_cell_imm32(field(offset_of!(Follow, resume)), resume);
        let _ = self.emit.jump(follow::entry());
        debug_assert_eq!(self.emit.here() as u32, resume);
        if let Some(tests) = &self.tests {
            self.emit.load_cell(tests.base, cpu::field(offset_of!(Cpu, shadow)));
        }
        self.announced = true;
    }

    /// The kind of a record, and the place.
    fn mark(&mut self, record: u8, kind: Kind) {
        self.emit.store_imm32(record, 0, kind as u32);
        self.emit.load_constant(RDX, self.superblock.pc);
        self.emit.store(record, 4, RDX);
    }

    fn close_mark(&mut self, record: u8, bytes: usize) {
        self.emit.lea(record, record, bytes as i32);
        self.emit.store_cell(cpu::field(offset_of!(Cpu, events)), record);
    }

    /// Leaves if the function is called from somewhere that is not known: it may return there, and
    /// nothing would tell. The load faults if there is no stack; the handler leaves as well.
    fn know_site(&mut self) {
        self.emit.load(RDX, RSP, 0);
        self.emit.select_bits(RCX, RDX, cpu::field(offset_of!(Cpu, site_mask)));
        self.emit.load_scaled(RCX, RCX, sites::table(self.superblock.marks.sites));
        self.emit.lea_sum(RCX, RCX, RDX);
        // jrcxz over the jump
        self.emit.jump_if_rcx_zero(5);
        let hole = self.emit.jump_hole();
        self.pending.push((hole, Pending::Learn));
    }

    /// Out of line: to the dispatcher, with nothing done.
    pub(super) fn learn(&mut self) {
        self.index = 0;
        self.spills = self.reserved().with(RCX, SLOT_RCX).with(RDX, SLOT_RDX);
        self.note(false);
        self.unspill(RDX, SLOT_RDX);
        self.unspill(RCX, SLOT_RCX);
        let number = self.number_exit(0, 0, false);
        self.give_back(self.reserved());
        let jump = self.emit.jump_hole();
        let stub = self.stub(number);
        self.emit.fill_to(jump, u64::from(stub));
        let kind = ExitKind::Learn(self.superblock.pc);
        self.exits.push(Exit { kind, patch: 0, stub, kept: None, executed: 0 });
    }
}
