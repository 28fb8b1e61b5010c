//! Code that all translations share, and what they agree on.

use super::{EXIT_INDIRECT, SLOT_RCX, SLOT_RDX};
use crate::layout;
use crate::runner::cpu::reg::{RAX, RCX, RDX, RSP};
use crate::runner::cpu::{self, Cpu};
use crate::runner::translate::emit::Emit;
use crate::runner::translate::map::Spills;
use std::mem::offset_of;

/// Slot of rax while the second table is looked at.
const SLOT_SECOND: u8 = 5;

/// Where the shared code is, and what is put aside.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared {
    /// The table had no entry, or the ticks have run out: the target is in rdx.
    pub table_miss: u64,
    /// The table's entry was another pc's: the target is in rdx. Looks in the second table.
    pub verify_miss: u64,
    /// The table of returns had no entry: as an indirect branch to the target in rdx.
    pub return_miss: u64,
    /// Its entry was another pc's, which has repaired the stack.
    pub return_elsewhere: u64,
    /// Registers that are put aside at every indirect branch and return, whoever makes it.
    pub common_spills: Spills,
}

impl Shared {
    /// Writes the code, for `place`.
    pub fn write(place: u64, common_spills: Spills) -> (Self, Vec<u8>) {
        let mut emit = Emit::at(place);
        let target = cpu::field(offset_of!(Cpu, target));
        let table_miss = emit.here();
        emit.store_cell(target, RDX);
        leave(&mut emit, common_spills);
        let verify_miss = emit.here();
        emit.store_cell(target, RDX);
        look_in_second_table(&mut emit);
        leave(&mut emit, common_spills);
        // Comes from a return, which has popped an address of ours.
        let return_miss = emit.here();
        emit.store(RSP, -8, RDX);
        let return_elsewhere = emit.here();
        emit.select_bits(RCX, RDX, cpu::field(offset_of!(Cpu, low_mask)));
        emit.load_entry(RCX, layout::INDIRECT_TABLE);
        emit.jump_register(RCX);
        let shared = Self { table_miss, verify_miss, return_miss, return_elsewhere, common_spills };
        (shared, emit.into_bytes())
    }
}

/// To the dispatcher, with everything in its place.
fn leave(emit: &mut Emit, common_spills: Spills) {
    emit.load_cell(RDX, cpu::slot(SLOT_RDX));
    emit.load_cell(RCX, cpu::slot(SLOT_RCX));
    for spill in common_spills.iter() {
        emit.load_cell(spill.register, cpu::slot(spill.slot));
    }
    emit.store_cell_imm32(cpu::field(offset_of!(Cpu, exit)), EXIT_INDIRECT);
    let _ = emit.jump(cpu::landmarks().exit_cache);
}

/// Goes on at the target in rdx if the second table has it. Two words an entry, so the index is
/// doubled before it is scaled.
fn look_in_second_table(emit: &mut Emit) {
    emit.store_cell(cpu::slot(SLOT_SECOND), RAX);
    emit.select_bits(RAX, RDX, cpu::field(offset_of!(Cpu, second_mask)));
    emit.lea_sum(RAX, RAX, RAX);
    emit.load_scaled(RCX, RAX, layout::SECOND_TABLE);
    emit.lea_sum(RCX, RCX, RDX);
    emit.load_scaled(RDX, RAX, layout::SECOND_TABLE + 8);
    emit.load_cell(RAX, cpu::slot(SLOT_SECOND));
    emit.jump_if_rcx_zero(5);
    let missing = emit.jump_hole();
    emit.store_cell(cpu::field(offset_of!(Cpu, entry)), RDX);
    emit.load_cell(RDX, cpu::slot(SLOT_RDX));
    emit.load_cell(RCX, cpu::slot(SLOT_RCX));
    emit.jump_cell(cpu::field(offset_of!(Cpu, entry)));
    emit.fill(missing);
}
