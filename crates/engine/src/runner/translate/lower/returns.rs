//! Calls and returns that the processor predicts with its own stack of return addresses.
//!
//! ```text
//! call:        call over          the processor notes the address of the pad
//! pad:         verify, restore    comes from a return; goes on at the guest's return address
//!              jmp …              linked
//! over:        [rsp] = guest's return address
//!              returns[hash of it] = pad
//!              jmp …              linked, to the callee
//!
//! return:      rdx = [rsp]; [rsp] = returns[hash of rdx]; ret
//! ```
//!
//! The guest's stack holds an address of ours only inside these sequences, where nobody looks: a
//! signal waits for the next instruction boundary, and other threads for the baton. The pad puts
//! back the word that the return popped, as what lies below the stack pointer can be read as well.
//!
//! Each call must have its return, or the processor's stack is off by one for all callers: a call
//! is translated in line, without either, only if nothing in it can leave the superblock.

use super::exits::{self, Pending};
use super::indirect::Target;
use super::{Lower, SLOT_RCX, SLOT_RDX};
use crate::runner::cpu::reg::{RCX, RDX, RSP};
use crate::runner::cpu::{self, Cpu};
use crate::runner::layout;
use crate::runner::translate::facts::Flow;
use std::mem::offset_of;

/// Where the table of returns has the entry of a return address: by its lower 16 bits, as the last
/// call through an entry is nearly always the first to return.
fn return_entry(pc: u64) -> u64 {
    layout::RETURN_TABLE + (pc & layout::RETURN_LOW) * 4
}

impl Lower<'_> {
    /// A call whose callee is elsewhere; the superblock goes on behind it.
    pub(super) fn call_past(&mut self) {
        if self.guest().facts.flow == Flow::IndirectCall {
            self.spill(RCX, SLOT_RCX);
            self.spill(RDX, SLOT_RDX);
            self.load_target();
            self.look_up();
        }
        let over = self.emit.call_hole();
        let pad = self.emit.here();
        self.pending.push((over, Pending::Call { index: self.index, pad }));
        self.pad();
        self.exchange(self.shared.standing, self.reserved());
    }

    /// From the call to the callee.
    pub(super) fn rest_of_call(&mut self, index: u16, pad: u64) {
        self.index = index;
        self.spills = self.reserved();
        match self.guest().facts.flow {
            Flow::Call(target) => {
                self.note(false);
                self.set_return_address(pad);
                self.jump(target);
            }
            _ => {
                self.spills = self.spills.with(RCX, SLOT_RCX).with(RDX, SLOT_RDX);
                self.note(false);
                self.set_return_address(pad);
                self.go(0);
            }
        }
    }

    /// Pushes the return address; the callee comes next, and nothing here behind it.
    pub(super) fn call(&mut self) {
        if self.superblock.alone {
            self.push_return_address();
            return;
        }
        let back = self.guest().instruction.next_ip();
        let spills = self.spills;
        let over = self.emit.call_hole();
        let pad = self.emit.here();
        self.pad();
        let hole = self.emit.jump_hole();
        self.pending.push((hole, Pending::Pad { back, executed: self.index + 1 }));
        self.spills = spills;
        self.emit.fill(over);
        self.note(false);
        self.set_return_address(pad);
    }

    /// Comes from a return with the target in rdx, and rcx and rdx in their slots.
    fn pad(&mut self) {
        self.spills = self.shared.standing.with(RCX, SLOT_RCX).with(RDX, SLOT_RDX);
        self.note(false);
        self.emit.store(RSP, -8, RDX);
        self.verify(self.guest().instruction.next_ip(), self.shared.return_elsewhere);
        self.note(false);
    }

    /// Puts the guest's return address in place of the pad's.
    fn set_return_address(&mut self, pad: u64) {
        let back = self.guest().instruction.next_ip();
        if let Ok(low) = i32::try_from(back) {
            self.emit.store_wide_imm32(RSP, 0, low);
        } else {
            self.emit.lea(RSP, RSP, 8);
            self.push_constant(back);
        }
        self.pads.push(back);
        self.emit.store_cell_imm32(return_entry(back), pad as u32);
    }

    /// A return that leaves the superblock.
    pub(super) fn return_(&mut self) {
        if self.superblock.alone || self.guest().instruction.op_count() != 0 {
            self.indirect(Target::Stack);
            return;
        }
        self.spill(RCX, SLOT_RCX);
        self.spill(RDX, SLOT_RDX);
        self.emit.load(RDX, RSP, 0);
        self.emit.select_bits(RCX, RDX, cpu::field(offset_of!(Cpu, return_mask)));
        self.emit.load_entry(RCX, layout::RETURN_TABLE);
        self.emit.store(RSP, 0, RCX);
        self.note(false);
        self.foot_of_indirect(self.fields());
        if self.instrumentation.ticks {
            let ticks = exits::cell(exits::RETURN);
            self.emit.load_cell(RCX, ticks);
            self.emit.lea(RCX, RCX, -1);
            self.emit.store_cell(ticks, RCX);
            // jrcxz over the return, to where the target is put back
            self.emit.jump_if_rcx_zero(1);
        }
        self.emit.raw(&[0xc3]);
        if self.instrumentation.ticks {
            self.emit.store(RSP, 0, RDX);
            self.emit.lea(RSP, RSP, 8);
            let _ = self.emit.jump(self.shared.table_miss);
        }
    }
}
