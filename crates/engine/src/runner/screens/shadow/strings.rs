//! The test of a repeated string instruction against the shadow: all that it is about to touch.
//!
//! It starts slowly anyway, so the test may take some instructions: it saves the flags in rax, and
//! walks along the shadow. What it does not understand (the direction flag, addresses that there
//! cannot be) it leaves to the dispatcher, which looks at what the instruction has done.

use crate::runner::cpu::reg::{RAX, RCX, RDI, RSI};
use crate::runner::cpu::{self, Cpu, slot};
use crate::runner::screens::Stage;
use crate::runner::translate::accesses::Accesses;
use crate::runner::translate::emit::Condition;
use crate::runner::translate::lower::{Lower, Pending};
use crate::runner::translate::map::Spills;
use events::plan::GRANULE;
use std::mem::offset_of;

/// Slot of rax, which holds the flags.
const SLOT_RAX: u8 = 9;
/// Slot of rsi, with which the direction is found out.
const SLOT_RSI: u8 = 10;
/// Where the end of the shadow is, which is no register's.
const SLOT_END: u8 = 11;

/// The arithmetic flags that a guest had when such a test began, by what rax holds in its middle.
pub fn kept_flags(spills: &Spills, rax: u64) -> Option<u64> {
    let under_way = spills.iter().any(|spill| spill.slot == SLOT_RAX);
    under_way.then_some(rax >> 8 & 0xd5 | (rax & 1) << 11)
}

impl Lower<'_> {
    /// Tests everything that the instruction will touch if it completes.
    pub(in crate::runner) fn test_repeat(&mut self) {
        let Some(tests) = &self.tests else { return };
        let (base, scratch) = (tests.base, tests.scratch);
        let Accesses::Repeat { size, source, writes, .. } = self.guest().accesses else { return };
        self.spill(RAX, SLOT_RAX);
        self.find_direction(scratch);
        self.emit.raw(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
        let upwards = cpu::field(offset_of!(Cpu, shadow)) + 1;
        self.emit.compare_constant(scratch, upwards as i32);
        self.suspect_repeat_if(Condition::NOT_EQUAL);
        self.emit.compare_cell(cpu::field(offset_of!(Cpu, user_end)), RCX);
        self.suspect_repeat_if(Condition::BELOW);
        for (start, there) in [(RSI, source), (RDI, writes)] {
            if there {
                self.walk_shadow(start, size as u8, base, scratch);
            }
        }
        self.restore_flags();
        self.spills = self.reserved();
        self.note(true);
    }

    /// Loads any byte, and leaves in the scratch register where that has moved rsi.
    fn find_direction(&mut self, scratch: u8) {
        self.spill(RSI, SLOT_RSI);
        self.emit.load_constant(RSI, cpu::field(offset_of!(Cpu, shadow)));
        self.emit.raw(&[0xac]); // lodsb
        self.emit.copy(scratch, RSI);
        self.unspill(RSI, SLOT_RSI);
    }

    /// From the shadow of `[start]` to that of `[start + rcx * size]`: eight bytes at a time, then
    /// one by one, so that what lies behind is not looked at.
    fn walk_shadow(&mut self, start: u8, size: u8, base: u8, scratch: u8) {
        let (user_end, end) = (cpu::field(offset_of!(Cpu, user_end)), slot(SLOT_END));
        self.emit.compare_cell(user_end, start);
        self.suspect_repeat_if(Condition::BELOW);
        self.emit.lea_scaled(scratch, Some(start), RCX, size, 0);
        self.emit.compare_cell(user_end, scratch);
        self.suspect_repeat_if(Condition::BELOW);
        self.emit.lea(scratch, scratch, GRANULE as i32 - 1);
        self.emit.shift_right(scratch, scratch, base);
        self.emit.store_cell(end, scratch);
        self.emit.shift_right(scratch, start, base);
        let words = self.emit.here();
        self.emit.lea(scratch, scratch, 8);
        self.emit.compare_cell(end, scratch);
        let rest = self.emit.branch_hole(Condition::BELOW);
        self.emit.compare_sum(scratch, base, -8, 8);
        self.suspect_repeat_if(Condition::NOT_EQUAL);
        let _ = self.emit.jump(words);
        self.emit.fill(rest);
        self.emit.lea(scratch, scratch, -8);
        let bytes = self.emit.here();
        self.emit.compare_cell(end, scratch);
        let done = self.emit.branch_hole(Condition::BELOW_OR_EQUAL);
        self.emit.compare_sum(scratch, base, 0, 1);
        self.suspect_repeat_if(Condition::NOT_EQUAL);
        self.emit.lea(scratch, scratch, 1);
        let _ = self.emit.jump(bytes);
        self.emit.fill(done);
    }

    fn suspect_repeat_if(&mut self, condition: Condition) {
        let hole = self.emit.branch_hole(condition);
        let (index, fields) = (self.index, self.fields());
        self.pending.push((hole, Pending::SuspectRepeat { index, fields }));
    }

    /// The test has found something, or cannot be made.
    pub(in crate::runner) fn suspect_repeat(&mut self, index: u16, fields: u16) {
        self.index = index;
        self.spills = self.reserved().with(RAX, SLOT_RAX);
        self.note(false);
        self.restore_flags();
        self.suspect(index, fields, Stage::Accesses);
    }

    fn restore_flags(&mut self) {
        self.emit.raw(&[0x04, 0x7f, 0x9e]); // add al, 127; sahf
        self.unspill(RAX, SLOT_RAX);
    }
}
