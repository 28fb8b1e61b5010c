//! Branches whose target is a value: by way of the table that takes some bits of a pc to the
//! translation it probably has.

use super::exits::{self, Pending};
use super::{Exit, ExitKind, Lower, SLOT_RCX, SLOT_RDX, slot};
use crate::layout;
use crate::runner::cpu;
use crate::runner::cpu::reg::{RCX, RDX, RSP};
use crate::runner::translate::facts::{Flow, number};
use crate::runner::translate::superblock::Guest;
use iced_x86::Register;

impl Lower<'_> {
    /// A return inside a followed call: goes on here if it goes where the call came from.
    pub(super) fn checked_return(&mut self, expected: u64) {
        self.spill(RCX, SLOT_RCX);
        self.spill(RDX, SLOT_RDX);
        self.emit.load(RCX, RSP, 0);
        self.emit.load_constant(RDX, expected.wrapping_neg());
        self.emit.lea_sum(RCX, RCX, RDX);
        // jrcxz over the side exit
        self.emit.jump_if_rcx_zero(5);
        let other = self.emit.jump_hole();
        self.emit.load_cell(RDX, slot(SLOT_RDX));
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        self.spills = self.reserved();
        self.emit.lea(RSP, RSP, 8);
        let fields = self.fields();
        self.pending.push((other, Pending::ReturnElsewhere { index: self.index, fields }));
        self.inline_tick(true);
    }

    pub(super) fn indirect(&mut self, target: Target) {
        self.spill(RCX, SLOT_RCX);
        self.spill(RDX, SLOT_RDX);
        match target {
            Target::Stack => {
                let guest = self.guest();
                let extra = if guest.instruction.op_count() == 1 {
                    i32::from(guest.instruction.immediate16())
                } else {
                    0
                };
                self.emit.load(RDX, RSP, 0);
                self.look_up();
                self.emit.lea(RSP, RSP, 8 + extra);
            }
            Target::Operand => {
                self.load_target();
                self.look_up();
                if self.guest().facts.flow == Flow::IndirectCall {
                    self.call();
                }
            }
        }
        self.go(self.fields());
    }

    /// The target of an indirect jump or call to rdx.
    pub(super) fn load_target(&mut self) {
        let guest = self.guest();
        if let Some(register) = number(guest.instruction.op0_register()) {
            if register != RDX {
                self.emit.copy(RDX, register);
            }
        } else if guest.is_pc_relative() {
            let address = guest.instruction.ip_rel_memory_address();
            let segment: &[u8] = match guest.instruction.segment_prefix() {
                Register::FS => &[0x64],
                Register::GS => &[0x65],
                _ => &[],
            };
            self.emit.load_constant(RDX, address);
            self.emit.raw(segment);
            self.emit.load(RDX, RDX, 0);
        } else {
            let load = load_of_branch_operand(guest);
            self.emit.raw(&load);
        }
    }

    /// Loads to rcx where the translation begins that probably belongs to the target in rdx. For a
    /// target that no program can have there is nothing to load and this faults: the branch has
    /// not happened yet, as on the processor.
    pub(super) fn look_up(&mut self) {
        self.emit.select_bits(RCX, RDX, cpu::indirect_mask());
        self.emit.load_entry(RCX, layout::INDIRECT_TABLE);
    }

    /// Completes the record of a superblock that is left by an indirect branch.
    pub(super) fn foot_of_indirect(&mut self, fields: u16) {
        if self.observer.is_some() {
            let executed = self.index + 1;
            let number = self.number_exit(executed, fields, false);
            self.close_record(number, fields);
            let kind = ExitKind::Indirect;
            self.exits.push(Exit { kind, patch: 0, stub: 0, kept: None, executed });
        }
        self.exchange(self.reserved(), self.shared.common_spills);
    }

    /// To the translation that was looked up; its prefix makes sure.
    pub(super) fn go(&mut self, fields: u16) {
        self.foot_of_indirect(fields);
        if self.instrumentation.ticks {
            let ticks = exits::cell(exits::INDIRECT);
            self.emit.load_cell(RCX, ticks);
            self.emit.lea(RCX, RCX, -1);
            self.emit.store_cell(ticks, RCX);
            // jrcxz over the lookup and the jump
            self.emit.jump_if_rcx_zero(18);
            self.look_up();
        }
        self.emit.jump_register(RCX);
        if self.instrumentation.ticks {
            let _ = self.emit.jump(self.shared.table_miss);
        }
    }
}

/// Where a target is.
pub(super) enum Target {
    /// On the stack, for a return.
    Stack,
    /// In the instruction's operand.
    Operand,
}

/// `jmp [operand]` or `call [operand]` turned into `mov rdx, [operand]`.
fn load_of_branch_operand(guest: &Guest) -> Vec<u8> {
    let bytes = guest.bytes();
    let opcode = bytes.iter().position(|byte| *byte == 0xff).expect("an indirect branch is FF");
    let mut out = Vec::with_capacity(15);
    let mut rex = 0x48;
    for byte in &bytes[..opcode] {
        match byte {
            0x40..=0x4f => rex |= byte & 3,
            0x26 | 0x2e | 0x36 | 0x3e | 0xf2 | 0xf3 => {} // hints and BND mean nothing here
            prefix => out.push(*prefix),
        }
    }
    out.extend_from_slice(&[rex, 0x8b, bytes[opcode + 1] & 0xc7 | RDX << 3]);
    out.extend_from_slice(&bytes[opcode + 2..]);
    out
}
