//! Compares the [owner](crate::runner::owners) of an address with that of the pointer it was made from.
//!
//! ```text
//! pext T, pointer, [bits]; movzx T, byte [T + OWNERS]; mov [owner], T
//! lea T, address; pext T, T, [bits]; movzx T, byte [T + OWNERS]; cmp [owner], T; jne unlike
//! ```
//!
//! Most are alike, as most addresses are of no block at all. Out of line the zeros are sorted out; if it is
//! not the base that points to a block, it may be the index. Where flags must be left alone, both numbers
//! index a table of pairs, and what is found there becomes part of an address as with the shadow.

use super::Lower;
use super::exits::Pending;
use crate::runner::cpu::{self, Cpu};
use crate::runner::translate::accesses::Form;
use crate::runner::translate::emit::Condition;
use crate::runner::{layout, owners};
use std::mem::offset_of;

/// An address and its pointer that have unlike owners.
#[derive(Clone, Copy)]
pub(super) struct Unlike {
    /// The instruction.
    index: u16,
    fields: u16,
    /// The register that may be the pointer instead.
    other: Option<u8>,
    /// Where to go on if all is well.
    back: u64,
}

fn owner() -> u64 {
    cpu::field(offset_of!(Cpu, owner))
}

impl Lower<'_> {
    /// For all addresses that the instruction makes. Whether there are any.
    pub(super) fn compare_owners(&mut self) -> bool {
        let Some(screen) = &self.screen else { return false };
        let scratch = screen.scratch;
        let strays = screen.strays_before(self.index);
        for stray in &strays {
            let (base, other) = match stray.form {
                Form::Base(base, _) => (base, None),
                Form::Sum(Some(base), index, 1, _) => (base, Some(index)),
                Form::Sum(Some(base), ..) => (base, None),
                Form::Sum(None, ..) | Form::Constant(_) => continue,
            };
            self.load_owner(scratch, base);
            if stray.keeps_flags {
                self.emit.store_cell_byte(owner() + 1, scratch);
                self.load_owner_of_sum(scratch, stray.form);
                self.emit.store_cell_byte(owner(), scratch);
                self.emit.load_cell_short(scratch, owner());
                self.emit.load_table_byte(scratch, scratch, owners::unlike());
                self.emit.load_word(scratch, scratch, layout::LAST_WORD);
                continue;
            }
            self.emit.store_cell(owner(), scratch);
            self.load_owner_of_sum(scratch, stray.form);
            self.emit.compare_cell(owner(), scratch);
            let hole = self.emit.branch_hole(Condition::NOT_EQUAL);
            let (index, fields, back) = (self.index, self.fields(), self.emit.here());
            self.pending.push((hole, Pending::Unlike(Unlike { index, fields, other, back })));
        }
        !strays.is_empty()
    }

    fn load_owner(&mut self, to: u8, pointer: u8) {
        self.emit.select_bits(to, pointer, cpu::field(offset_of!(Cpu, owner_mask)));
        self.emit.load_table_byte(to, to, layout::OWNERS.start);
    }

    fn load_owner_of_sum(&mut self, to: u8, form: Form) {
        match form {
            Form::Base(base, by) => self.emit.lea(to, base, by as i32),
            Form::Sum(base, index, scale, by) => self.emit.lea_scaled(to, base, index, scale, by),
            Form::Constant(address) => self.emit.load_constant(to, address),
        }
        self.load_owner(to, to);
    }

    /// Out of line, with the pointer's owner in its cell and the address's in the scratch register.
    pub(super) fn find_owner(&mut self, unlike: Unlike) {
        let Some(scratch) = self.screen.as_ref().map(|screen| screen.scratch) else { return };
        self.index = unlike.index;
        self.spills = self.reserved();
        self.note(false);
        self.emit.compare_constant(scratch, 0);
        self.emit.branch(Condition::EQUAL, unlike.back);
        self.emit.compare_cell_imm32(owner(), 0);
        let astray = self.emit.branch_hole(Condition::NOT_EQUAL);
        if let Some(other) = unlike.other {
            self.emit.store_cell(owner(), scratch);
            self.load_owner(scratch, other);
            self.emit.compare_cell(owner(), scratch);
            self.emit.branch(Condition::EQUAL, unlike.back);
            self.emit.compare_constant(scratch, 0);
            self.emit.branch(Condition::EQUAL, unlike.back);
        } else {
            let _ = self.emit.jump(unlike.back);
        }
        self.emit.fill(astray);
        self.suspect(unlike.index, unlike.fields);
    }
}
