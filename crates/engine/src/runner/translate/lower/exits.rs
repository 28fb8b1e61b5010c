//! How a superblock is left: exits and their stubs, and ticks on the way.
//!
//! An exit is a jump that the cache links to the next translation. Until then it leads to a stub,
//! which tells the dispatcher which exit was taken.

use super::{Exit, ExitKind, Lower, SLOT_CHECK, SLOT_RCX, SLOT_RDX, slot};
use crate::runner::cpu::reg::{RCX, RDX, RSP};
use crate::runner::cpu::{self, Cpu};
use crate::runner::translate::emit::{Condition, Hole};
use crate::runner::translate::facts::ARITHMETIC_FLAGS;
use crate::runner::translate::superblock::Guest;
use events::shape;
use std::mem::offset_of;

/// Code that stands out of line, behind the body.
#[derive(Clone, Copy)]
pub(super) enum Pending {
    /// Bookkeeping and link jump of an exit.
    Exit(Leaving),
    /// A call, when the processor has noted its pad.
    Call { index: u16, pad: u64 },
    /// The link jump behind a pad.
    Pad { back: u64, executed: u16 },
    /// A checked return that goes somewhere else.
    ReturnElsewhere { index: u16, fields: u16 },
    /// A test against the shadow that found something.
    Suspect { index: u16, fields: u16 },
}

/// An exit that has not been written yet.
#[derive(Clone, Copy)]
pub(super) struct Leaving {
    kind: ExitKind,
    executed: u16,
    tick: bool,
    fields: u16,
    taken: bool,
}

impl Lower<'_> {
    pub(super) fn leave(&mut self, hole: Hole, kind: ExitKind, taken: bool, tick: bool) {
        let executed = match kind {
            ExitKind::Refuse(_) => self.index,
            _ => self.index + 1,
        };
        let fields = self.fields();
        self.pending.push((hole, Pending::Exit(Leaving { kind, executed, tick, fields, taken })));
    }

    pub(super) fn stop(&mut self, kind: ExitKind) {
        let hole = self.emit.jump_hole();
        self.leave(hole, kind, false, false);
    }

    /// Numbers an exit, and tells the consumer of it.
    pub(super) fn number_exit(&mut self, executed: u16, fields: u16, taken: bool) -> u32 {
        if let Some(observer) = &mut self.observer {
            observer.shape.exits.push(shape::Exit { executed, fields, taken });
        }
        self.first_exit + self.exits.len() as u32
    }

    /// A tick in the middle of a superblock, where control goes on to the next instruction.
    pub(super) fn inline_tick(&mut self, backward: bool) {
        if !(self.plan.ticks && backward) {
            return;
        }
        let target = self.superblock.guests.get(self.index as usize + 1);
        let flags_dead = target.is_some_and(|guest| guest.live_flags & ARITHMETIC_FLAGS == 0);
        let pc = target.map_or(self.superblock.next, Guest::pc);
        self.count_tick(flags_dead, ExitKind::Direct(pc));
    }

    /// Takes one from the ticks, and leaves when none are left. The branch has happened.
    pub(super) fn count_tick(&mut self, flags_dead: bool, when_out: ExitKind) {
        let ticks = cpu::field(offset_of!(Cpu, ticks));
        if flags_dead {
            self.emit.decrement_cell(ticks);
            let hole = self.emit.branch_hole(Condition::EQUAL);
            self.leave(hole, when_out, false, false);
            return;
        }
        self.spill(RCX, SLOT_RCX);
        self.emit.load_cell(RCX, ticks);
        self.emit.lea(RCX, RCX, -1);
        self.emit.store_cell(ticks, RCX);
        // jrcxz out; restore; jmp on; out: restore; jmp stub
        self.emit.jump_if_rcx_zero(9);
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        self.emit.raw(&[0xeb, 12]);
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        let hole = self.emit.jump_hole();
        self.spills = self.spills.without(RCX);
        self.leave(hole, when_out, false, false);
    }

    pub(super) fn out_of_line(&mut self) {
        let mut next = 0;
        while let Some((hole, pending)) = self.pending.get(next).copied() {
            next += 1;
            match pending {
                Pending::Exit(exit) => self.exit(hole, exit),
                Pending::Call { index, pad } => {
                    self.emit.fill(hole);
                    self.rest_of_call(index, pad);
                }
                Pending::Pad { back, executed } => {
                    let number = self.number_exit(executed, 0, false);
                    self.link(hole, number, ExitKind::Direct(back), executed);
                }
                Pending::ReturnElsewhere { index, fields } => {
                    self.emit.fill(hole);
                    self.index = index;
                    self.spills = self.reserved().with(RDX, SLOT_RDX);
                    if !self.spills.has(RCX, SLOT_RCX) {
                        self.spills = self.spills.with(RCX, SLOT_RCX);
                    }
                    self.note(false);
                    self.emit.load(RDX, RSP, 0);
                    self.look_up();
                    self.emit.lea(RSP, RSP, 8);
                    self.go(fields);
                }
                Pending::Suspect { index, fields } => {
                    self.emit.fill(hole);
                    self.suspect(index, fields);
                }
            }
        }
    }

    /// What is left to do when an exit is taken.
    pub(super) fn exit(&mut self, hole: Hole, exit: Leaving) {
        let Leaving { kind, executed, tick, fields, taken } = exit;
        let number = self.number_exit(executed, fields, taken);
        let tick = tick && self.plan.ticks;
        if !tick && !self.reserves() {
            self.link(hole, number, kind, executed);
            return;
        }
        self.emit.fill(hole);
        self.index = executed.saturating_sub(1);
        self.spills = self.reserved();
        self.note(false);
        self.foot(number, fields, false);
        if tick {
            self.exit_with_tick(number, kind, executed);
        } else {
            let link = self.emit.jump_hole();
            self.link(link, number, kind, executed);
        }
    }

    /// The jump of an exit: to its stub until it is linked.
    pub(super) fn link(&mut self, jump: Hole, number: u32, kind: ExitKind, executed: u16) -> u32 {
        let stub = self.stub(number);
        self.emit.fill_to(jump, u64::from(stub));
        let patch = self.emit.hole_place(jump);
        self.exits.push(Exit { kind, patch, stub, executed });
        stub
    }

    /// The instruction has not begun; only rcx is not what it was.
    pub(super) fn suspect(&mut self, index: u16, fields: u16) {
        self.index = index;
        self.spills = self.reserved();
        if !self.spills.has(RCX, SLOT_RCX) {
            self.spills = self.spills.with(RCX, SLOT_CHECK);
            self.note(false);
            self.unspill(RCX, SLOT_CHECK);
        } else {
            self.note(false);
        }
        let number = self.number_exit(index, fields, false);
        self.foot(number, fields, false);
        let stub = self.stub(number);
        let _ = self.emit.jump(u64::from(stub));
        let kind = ExitKind::Suspect(self.guest().pc());
        self.exits.push(Exit { kind, patch: 0, stub, executed: index });
    }

    pub(super) fn exit_with_tick(&mut self, number: u32, kind: ExitKind, executed: u16) {
        let ticks = cpu::field(offset_of!(Cpu, ticks));
        if self.flags_dead_at(kind) {
            self.emit.decrement_cell(ticks);
            let out = self.emit.branch_hole(Condition::EQUAL);
            let link = self.emit.jump_hole();
            let stub = self.link(link, number, kind, executed);
            self.emit.fill_to(out, u64::from(stub));
            return;
        }
        self.emit.store_cell(slot(SLOT_RCX), RCX);
        self.emit.load_cell(RCX, ticks);
        self.emit.lea(RCX, RCX, -1);
        self.emit.store_cell(ticks, RCX);
        self.emit.jump_if_rcx_zero(12);
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        let link = self.emit.jump_hole();
        let stub = self.link(link, number, kind, executed);
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        let _ = self.emit.jump(u64::from(stub));
    }

    /// Whether the code that an exit leads to, here in this superblock, needs no flags.
    pub(super) fn flags_dead_at(&self, kind: ExitKind) -> bool {
        let ExitKind::Direct(target) = kind else { return false };
        let guest = self.superblock.guests.iter().find(|guest| guest.pc() == target);
        guest.is_some_and(|guest| guest.live_flags & ARITHMETIC_FLAGS == 0)
    }

    /// Tells the dispatcher which exit was taken.
    pub(super) fn stub(&mut self, number: u32) -> u32 {
        let stub = self.far.here() as u32;
        self.far.store_cell_imm32(cpu::field(offset_of!(Cpu, exit)), number);
        let _ = self.far.jump(cpu::landmarks().exit_cache);
        stub
    }
}
