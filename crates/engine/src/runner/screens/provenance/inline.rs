//! Compares the memory tag of an address with that of the pointer it was made from.
//!
//! ```text
//! pext B, pointer, [bits]; movzx B, byte [B + TAGS]
//! lea T, address; pext T, T, [bits]; movzx T, byte [T + TAGS]; cmp B, T; jne unlike
//! ```
//!
//! `B` is the register that holds the base of the shadow, which is loaded again. Nothing is stored: a cell
//! that all tests write to and read from made `bzip2` five times slower. Most tags are alike, as most
//! addresses are of no block at all. Out of line the zeros are sorted out; if it is not the base that
//! points to a block, it may be the index. Where flags must be left alone, both tags index a table of
//! pairs, and what is found there becomes part of an address as with the shadow.

use super::arrange;
use crate::layout;
use crate::runner::cpu::{self, Cpu};
use crate::runner::screens::Stage;
use crate::runner::translate::accesses::Form;
use crate::runner::translate::emit::Condition;
use crate::runner::translate::lower::{Lower, Pending};
use std::mem::offset_of;

/// An address and its pointer that have unlike tags.
#[derive(Clone, Copy)]
pub struct Unlike {
    /// The instruction.
    index: u16,
    fields: u16,
    pointer: u8,
    /// The register that may be the pointer instead.
    other: Option<u8>,
    /// Where to go on if all is well.
    back: u64,
}

impl Lower<'_> {
    /// For all addresses that the instruction makes. Whether there are any.
    pub(in crate::runner) fn compare_tags(&mut self) -> bool {
        let Some(tests) = &self.tests else { return false };
        let (from, to) = (tests.base, tests.scratch);
        let all = tests.derived_before(self.index);
        for derived in &all {
            let (pointer, other) = match derived.form {
                Form::Base(base, _) => (base, None),
                Form::Sum(Some(base), index, 1, _) => (base, Some(index)),
                Form::Sum(Some(base), ..) => (base, None),
                Form::Sum(None, ..) | Form::Constant(_) => continue,
            };
            self.load_tag(from, pointer);
            self.load_tag_of_sum(to, derived.form);
            if derived.keeps_flags {
                self.emit.lea_scaled(from, None, from, 8, 0);
                self.emit.lea_scaled(from, None, from, 8, 0);
                self.emit.lea_scaled(to, Some(to), from, 4, 0);
                self.restore_base();
                self.emit.load_table_byte(to, to, arrange::differ());
                self.emit.load_word(to, to, layout::LAST_WORD);
                continue;
            }
            self.emit.compare_registers(from, to);
            self.restore_base();
            let hole = self.emit.branch_hole(Condition::NOT_EQUAL);
            let (index, fields, back) = (self.index, self.fields(), self.emit.here());
            let unlike = Unlike { index, fields, pointer, other, back };
            self.pending.push((hole, Pending::Unlike(unlike)));
        }
        !all.is_empty()
    }

    fn load_tag(&mut self, to: u8, pointer: u8) {
        self.emit.select_bits(to, pointer, cpu::field(offset_of!(Cpu, tag_mask)));
        self.emit.load_table_byte(to, to, layout::TAGS.start);
    }

    fn load_tag_of_sum(&mut self, to: u8, form: Form) {
        match form {
            Form::Base(base, by) => self.emit.lea(to, base, by as i32),
            Form::Sum(base, index, scale, by) => self.emit.lea_scaled(to, base, index, scale, by),
            Form::Constant(address) => self.emit.load_constant(to, address),
        }
        self.load_tag(to, to);
    }

    fn restore_base(&mut self) {
        if let Some(tests) = &self.tests {
            self.emit.load_cell(tests.base, cpu::field(offset_of!(Cpu, shadow)));
        }
    }

    /// Out of line, with the address's tag in the scratch register.
    pub(in crate::runner) fn look_at_unlike(&mut self, unlike: Unlike) {
        let Some(tests) = &self.tests else { return };
        let (from, to) = (tests.base, tests.scratch);
        self.index = unlike.index;
        self.spills = self.reserved();
        self.note(false);
        self.emit.compare_constant(to, 0);
        self.emit.branch(Condition::EQUAL, unlike.back);
        self.load_tag(from, unlike.pointer);
        self.emit.compare_constant(from, 0);
        let none = self.emit.branch_hole(Condition::EQUAL);
        // The distance of two blocks has bits that no address has, if it is negative.
        self.emit.compare_cell(cpu::field(offset_of!(Cpu, user_end)), unlike.pointer);
        let distance = self.emit.branch_hole(Condition::BELOW);
        let outside = self.emit.jump_hole();
        self.emit.fill(none);
        self.emit.fill(distance);
        if let Some(other) = unlike.other {
            self.load_tag(from, other);
            self.emit.compare_registers(from, to);
            self.emit.copy(to, from);
            self.restore_base();
            self.emit.branch(Condition::EQUAL, unlike.back);
            self.emit.compare_constant(to, 0);
            self.emit.branch(Condition::EQUAL, unlike.back);
        } else {
            self.restore_base();
            let _ = self.emit.jump(unlike.back);
        }
        self.emit.fill(outside);
        self.suspect(unlike.index, unlike.fields, Stage::Accesses);
    }
}
