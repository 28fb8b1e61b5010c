//! Ordinary calls of allocators go into the table here, in line: at the entry of a function and where it
//! returns. Whatever is not quite ordinary goes on to [`Lower::follow`].
//!
//! rcx and rdx are in their slots. Flags are left alone: conditions become numbers that are zero.

use super::arrange::{self, Asked, Deed, Line, UnderWay};
use crate::runner::cpu::reg::{RAX, RCX, RDI, RDX, RSI, RSP};
use crate::runner::cpu::{self, Cpu, slot};
use crate::runner::sites;
use crate::runner::translate::emit::Hole;
use crate::runner::translate::lower::{Lower, SLOT_RCX, SLOT_RDX};
use std::mem::offset_of;

const STACK: usize = offset_of!(UnderWay, stack);
const BACK: usize = offset_of!(UnderWay, back);
const VALUE: usize = offset_of!(UnderWay, value);
const FAMILY: usize = offset_of!(UnderWay, family);
const SITE: usize = offset_of!(UnderWay, site);
const ORDER: usize = offset_of!(UnderWay, order);
const IRREGULAR: usize = offset_of!(UnderWay, irregular);
const REGION: usize = offset_of!(UnderWay, region);

const LINE_SIZE: i32 = offset_of!(Line, size) as i32;
const LINE_ALLOCATED: i32 = offset_of!(Line, allocated) as i32;
const LINE_STATE: i32 = offset_of!(Line, state) as i32;
const LINE_ORDER: i32 = offset_of!(Line, order) as i32;

fn cell(field: usize) -> u64 {
    cpu::field(offset_of!(Cpu, allocation) + field)
}

/// Jumps that are filled when all is written.
#[derive(Default)]
struct Ways {
    /// To where the engine is called.
    slow: Vec<Hole>,
    /// To where nothing is left to do.
    done: Vec<Hole>,
}

impl Lower<'_> {
    /// A function is entered; rdx is its return address.
    pub(in crate::runner) fn enter_allocation(&mut self, deed: Deed) {
        let mut ways = Ways::default();
        self.pass_inner_call(&mut ways);
        let family = match deed {
            Deed::Allocates(family, asked) => {
                self.asked(asked, &mut ways);
                family
            }
            Deed::Frees(family) => {
                self.release(family, &mut ways);
                self.emit.store_cell(cell(VALUE), RDI);
                0
            }
            Deed::FreesAlone(family) => {
                self.release(family, &mut ways);
                return self.close_allocation(ways, true);
            }
        };
        self.emit.load(RDX, RSP, 0);
        self.emit.store_cell(cell(BACK), RDX);
        self.emit.store_cell_imm32(cell(FAMILY), family.into());
        self.emit.store_cell(cell(STACK), RSP);
        self.close_allocation(ways, true);
    }

    /// Notes the size that is asked for, if a line has room for it.
    fn asked(&mut self, asked: Asked, ways: &mut Ways) {
        let size = match asked {
            Asked::First => RDI,
            Asked::Second => RSI,
            Asked::Product => {
                self.emit.copy(RDX, RDI);
                self.emit.multiply(RCX, RDX, RSI);
                self.unless_zero(&mut ways.slow);
                RDX
            }
        };
        self.emit.load_constant(RCX, 32);
        self.emit.shift_right(RCX, size, RCX);
        self.unless_zero(&mut ways.slow);
        self.emit.store_cell(cell(VALUE), size);
    }

    /// Whoever is inside a call already is left alone, if that has not been left by a jump.
    fn pass_inner_call(&mut self, ways: &mut Ways) {
        self.emit.load_cell(RCX, cell(STACK));
        let outer = self.emit.jump_if_rcx_zero_hole();
        self.emit.complement(RCX);
        self.emit.lea_scaled(RCX, Some(RSP), RCX, 1, 1);
        let same = self.emit.jump_if_rcx_zero_hole();
        self.below(ways);
        // At the same height, to return to the same place, it is a tail call.
        self.emit.fill_short(same);
        self.emit.load_cell(RCX, cell(BACK));
        self.emit.complement(RCX);
        self.emit.lea_scaled(RCX, Some(RDX), RCX, 1, 1);
        self.if_zero(&mut ways.done);
        ways.slow.push(self.emit.jump_hole());
        self.emit.fill_short(outer);
    }

    /// Done if the number in rcx is negative: the stack is below that of the call under way. Else it was
    /// left by a jump.
    fn below(&mut self, ways: &mut Ways) {
        self.emit.load_constant(RDX, 63);
        self.emit.shift_right(RCX, RCX, RDX);
        self.unless_zero(&mut ways.done);
        ways.slow.push(self.emit.jump_hole());
    }

    /// The block that rdi points to is freed, if it is a live one of the family.
    fn release(&mut self, family: u8, ways: &mut Ways) {
        self.emit.select_bits(RCX, RDX, cpu::field(offset_of!(Cpu, site_mask)));
        self.emit.load_entry(RCX, sites::numbers(self.superblock.marks.sites));
        self.emit.store_cell(cell(SITE), RCX);
        self.emit.copy(RCX, RDI);
        let nothing = self.emit.jump_if_rcx_zero_hole();
        self.find_line(RDI, ways);
        self.emit.load_bytes(RCX, RDX, LINE_STATE, 4);
        self.emit.lea(RCX, RCX, -i32::from(family));
        self.unless_zero(&mut ways.slow);
        self.emit.load_cell(RCX, cell(SITE));
        self.emit.lea(RCX, RCX, family.into());
        self.emit.store_word(RDX, LINE_STATE, RCX);
        self.emit.fill_short(nothing);
    }

    /// Leads rdx to the line of the block that begins where a register says.
    fn find_line(&mut self, begin: u8, ways: &mut Ways) {
        self.emit.select_bits(RCX, begin, cell(IRREGULAR));
        self.unless_zero(&mut ways.slow);
        self.emit.select_bits(RDX, begin, cell(REGION));
        self.emit.load_scaled(RDX, RDX, arrange::distances());
        self.emit.copy(RCX, RDX);
        self.if_zero(&mut ways.slow);
        self.emit.lea_sum(RDX, RDX, begin);
    }

    /// A function may have returned to the site of this number.
    pub(in crate::runner) fn leave_allocation(&mut self, site: u32) {
        let mut ways = Ways::default();
        self.emit.load_cell(RCX, cell(STACK));
        // How far the stack is above that of the call, when it has given up the return address.
        self.emit.complement(RCX);
        self.emit.lea_scaled(RCX, Some(RSP), RCX, 1, -7);
        let same = self.emit.jump_if_rcx_zero_hole();
        self.emit.copy(RDX, RCX);
        self.emit.load_cell(RCX, cell(STACK));
        self.if_zero(&mut ways.done);
        self.emit.copy(RCX, RDX);
        self.below(&mut ways);
        self.emit.fill_short(same);
        self.emit.load_cell(RCX, cell(BACK));
        self.emit.load_constant(RDX, self.superblock.pc.wrapping_neg());
        self.emit.lea_sum(RCX, RCX, RDX);
        self.unless_zero(&mut ways.slow);
        self.emit.load_cell(RCX, cell(FAMILY));
        let frees = self.emit.jump_if_rcx_zero_hole();
        // If it failed there is a block at zero, which nobody asks for.
        self.find_line(RAX, &mut ways);
        self.write_line(site);
        self.emit.fill_short(frees);
        self.emit.load_constant(RCX, 0);
        self.emit.store_cell(cell(STACK), RCX);
        self.close_allocation(ways, false);
    }

    /// A block has been allocated, whose line rdx leads to.
    fn write_line(&mut self, site: u32) {
        self.emit.load_cell(RCX, cell(VALUE));
        self.emit.store_word(RDX, LINE_SIZE, RCX);
        self.emit.store_imm32(RDX, LINE_ALLOCATED, site);
        self.emit.load_cell(RCX, cell(FAMILY));
        self.emit.store_word(RDX, LINE_STATE, RCX);
        self.emit.load_cell(RCX, cell(ORDER));
        self.emit.lea(RCX, RCX, 1);
        self.emit.store_cell(cell(ORDER), RCX);
        self.emit.store_word(RDX, LINE_ORDER, RCX);
    }

    /// The end of what is done in line, and the engine for the rest.
    fn close_allocation(&mut self, ways: Ways, entered: bool) {
        ways.done.into_iter().for_each(|hole| self.emit.fill(hole));
        self.emit.load_cell(RDX, slot(SLOT_RDX));
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        let over = self.emit.jump_hole();
        ways.slow.into_iter().for_each(|hole| self.emit.fill(hole));
        if entered {
            self.emit.load(RDX, RSP, 0);
        }
        self.follow();
        self.emit.fill(over);
    }

    fn unless_zero(&mut self, holes: &mut Vec<Hole>) {
        self.emit.jump_if_rcx_zero(5);
        holes.push(self.emit.jump_hole());
    }

    fn if_zero(&mut self, holes: &mut Vec<Hole>) {
        self.emit.jump_if_rcx_zero(2);
        self.emit.jump_short(5);
        holes.push(self.emit.jump_hole());
    }
}
