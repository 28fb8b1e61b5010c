//! Calls and returns that the processor predicts with its own stack of return addresses.
//!
//! ```text
//! call:        call over          the processor notes the address of the return stub
//! return stub: verify, restore    comes from a return; goes on at the guest's return address
//!              jmp …              linked
//! over:        [rsp] = guest's return address
//!              returns[hash of it] = return stub
//!              jmp …              linked, to the callee
//!
//! return:      rdx = [rsp]; [rsp] = returns[hash of rdx]; ret
//! ```
//!
//! The guest's stack holds an address of ours only inside these sequences, where nobody looks: a
//! signal waits for the next instruction boundary, and other threads for the baton. The return stub puts
//! back the word that the return popped, as what lies below the stack pointer can be read as well.
//!
//! Each call must have its return, or the processor's stack is off by one for all callers: a call
//! is translated in line, without either, only if nothing in it can leave the superblock.

use super::exits::{self, Pending};
use super::indirect::Target;
use super::{Lower, SLOT_RCX, SLOT_RDX};
use crate::layout;
use crate::runner::cpu;
use crate::runner::cpu::reg::{RCX, RDX, RSP};
use crate::runner::translate::facts::Flow;

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
        let return_stub = self.emit.here();
        self.pending.push((over, Pending::Call { index: self.index, return_stub }));
        self.return_stub();
        self.exchange(self.shared.common_spills, self.reserved());
    }

    /// From the call to the callee.
    pub(super) fn rest_of_call(&mut self, index: u16, return_stub: u64) {
        self.index = index;
        self.spills = self.reserved();
        match self.guest().facts.flow {
            Flow::Call(target) => {
                self.note(false);
                self.set_return_address(return_stub);
                self.jump(target);
            }
            _ => {
                self.spills = self.spills.with(RCX, SLOT_RCX).with(RDX, SLOT_RDX);
                self.note(false);
                self.set_return_address(return_stub);
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
        let return_stub = self.emit.here();
        self.return_stub();
        let hole = self.emit.jump_hole();
        self.pending.push((hole, Pending::ReturnStub { back, executed: self.index + 1 }));
        self.spills = spills;
        self.emit.fill(over);
        self.note(false);
        self.set_return_address(return_stub);
    }

    /// Comes from a return with the target in rdx, and rcx and rdx in their slots.
    fn return_stub(&mut self) {
        self.spills = self.shared.common_spills.with(RCX, SLOT_RCX).with(RDX, SLOT_RDX);
        self.note(false);
        self.emit.store(RSP, -8, RDX);
        self.verify(self.guest().instruction.next_ip(), self.shared.return_elsewhere);
        self.note(false);
    }

    /// Puts the guest's return address in place of the return stub's.
    fn set_return_address(&mut self, return_stub: u64) {
        let back = self.guest().instruction.next_ip();
        if let Ok(low) = i32::try_from(back) {
            self.emit.store_wide_imm32(RSP, 0, low);
        } else {
            self.emit.lea(RSP, RSP, 8);
            self.push_constant(back);
        }
        self.return_stubs.push(back);
        self.emit.store_cell_imm32(return_entry(back), return_stub as u32);
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
        self.emit.select_bits(RCX, RDX, cpu::return_mask());
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
