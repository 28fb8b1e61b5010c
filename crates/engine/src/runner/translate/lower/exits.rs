//! Exits of a translation: out of line, with their bookkeeping, and linked to the next translation.

use super::{Exit, ExitKind, Kept, Lower, SLOT_RCX, SLOT_RDX, slot};
use crate::runner::cpu::reg::{RCX, RDX, RSP};
use crate::runner::cpu::{self, Cpu};
use crate::runner::screens::Stage;
use crate::runner::screens::provenance::Unlike;
use crate::runner::translate::emit::{Condition, Hole};
use crate::runner::translate::facts::ARITHMETIC_FLAGS;
use crate::runner::translate::map::Spills;
use crate::runner::translate::superblock::Guest;
use events::shape;
use std::mem::offset_of;

/// Code that stands out of line, behind the body.
#[derive(Clone, Copy)]
pub(in crate::runner) enum Pending {
    /// Bookkeeping and link jump of an exit.
    Exit(Leaving),
    /// A call, when the processor has noted its return stub.
    Call { index: u16, return_stub: u64 },
    /// The link jump behind a return stub.
    ReturnStub { back: u64, executed: u16 },
    /// A checked return that goes somewhere else.
    ReturnElsewhere { index: u16, fields: u16 },
    /// A test of a screen that found something.
    Suspect { index: u16, fields: u16, stage: Stage },
    /// The same, of a repeated string instruction against the shadow.
    SuspectRepeat { index: u16, fields: u16 },
    /// An address and its pointer that have unlike tags.
    Unlike(Unlike),
    /// A function is entered from somewhere that is not known.
    Learn,
}

/// An exit that has not been written yet.
#[derive(Clone, Copy)]
pub(in crate::runner) struct Leaving {
    pub(super) kind: ExitKind,
    pub(super) executed: u16,
    pub(super) tick: bool,
    pub(super) fields: u16,
    pub(super) taken: bool,
}

/// Which cells of the countdown ticks are taken from: of those that often come one after the other
/// each has its own.
pub(super) const RETURN: usize = 0;
pub(super) const INDIRECT: usize = 1;
/// This one and the next.
const DIRECT: usize = 2;

/// Address of a cell of the countdown.
pub(super) fn cell(number: usize) -> u64 {
    cpu::field(offset_of!(Cpu, ticks)) + 8 * number as u64
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

    pub(super) fn out_of_line(&mut self) {
        self.unusual_entry();
        let mut next = 0;
        while let Some((hole, pending)) = self.pending.get(next).copied() {
            next += 1;
            match pending {
                Pending::Exit(exit) => self.exit(hole, exit),
                Pending::Call { index, return_stub } => {
                    self.emit.fill(hole);
                    self.rest_of_call(index, return_stub);
                }
                Pending::ReturnStub { back, executed } => {
                    let number = self.number_exit(executed, 0, false);
                    self.index = executed - 1;
                    let common_spills = self.shared.common_spills;
                    self.part(hole, common_spills, number, ExitKind::Direct(back), executed);
                }
                Pending::ReturnElsewhere { index, fields } => {
                    self.emit.fill(hole);
                    self.index = index;
                    self.spills = self.reserved().with(RCX, SLOT_RCX).with(RDX, SLOT_RDX);
                    self.note(false);
                    self.emit.load(RDX, RSP, 0);
                    self.look_up();
                    self.emit.lea(RSP, RSP, 8);
                    self.go(fields);
                }
                Pending::Suspect { index, fields, stage } => {
                    self.emit.fill(hole);
                    self.suspect(index, fields, stage);
                }
                Pending::SuspectRepeat { index, fields } => {
                    self.emit.fill(hole);
                    self.suspect_repeat(index, fields);
                }
                Pending::Unlike(unlike) => {
                    self.emit.fill(hole);
                    self.look_at_unlike(unlike);
                }
                Pending::Learn => {
                    self.emit.fill(hole);
                    self.learn();
                }
            }
        }
    }

    /// What is left to do when an exit is taken.
    fn exit(&mut self, hole: Hole, exit: Leaving) {
        let Leaving { kind, executed, tick, fields, taken } = exit;
        let number = self.number_exit(executed, fields, taken);
        let tick = tick && self.instrumentation.ticks;
        if !tick && !self.reserves() {
            self.link(hole, number, kind, executed);
            return;
        }
        self.emit.fill(hole);
        self.index = executed.saturating_sub(1);
        self.spills = self.reserved();
        self.note(false);
        if !tick && self.observer.is_none() {
            self.part(hole, self.spills, number, kind, executed);
            return;
        }
        self.close_record(number, fields);
        if tick {
            self.exit_with_tick(number, kind, executed);
        } else {
            let jump = self.emit.jump_hole();
            self.part(jump, self.spills, number, kind, executed);
        }
    }

    /// The jump of an exit: to its stub until it is linked.
    fn link(&mut self, jump: Hole, number: u32, kind: ExitKind, executed: u16) -> u32 {
        let stub = self.stub(number);
        self.emit.fill_to(jump, u64::from(stub));
        let patch = self.emit.hole_place(jump);
        self.exits.push(Exit { kind, patch, stub, kept: None, executed });
        stub
    }

    /// An exit that gives registers back, unless the next translation has put aside the same ones:
    /// then `jump` goes straight to it.
    fn part(
        &mut self,
        jump: Hole,
        aside: Spills,
        number: u32,
        kind: ExitKind,
        executed: u16,
    ) -> u32 {
        if aside == Spills::default() {
            return self.link(jump, number, kind, executed);
        }
        self.emit.fill(jump);
        let (patch, elsewhere) = (self.emit.hole_place(jump), self.emit.here() as u32);
        self.spills = aside;
        self.note(false);
        self.give_back(aside);
        let link = self.emit.jump_hole();
        let stub = self.link(link, number, kind, executed);
        let kept = Kept { patch, elsewhere, registers: aside.packed() };
        self.exits.last_mut().expect("just added").kept = Some(kept);
        stub
    }

    fn exit_with_tick(&mut self, number: u32, kind: ExitKind, executed: u16) {
        let ticks = cell(DIRECT + self.guest().pc() as usize % 2);
        let flags_dead = self.flags_dead_at(kind);
        let out = if flags_dead {
            self.emit.decrement_cell(ticks);
            Some(self.emit.branch_hole(Condition::EQUAL))
        } else {
            self.emit.store_cell(slot(SLOT_RCX), RCX);
            self.emit.load_cell(RCX, ticks);
            self.emit.lea(RCX, RCX, -1);
            self.emit.store_cell(ticks, RCX);
            self.emit.jump_if_rcx_zero(12);
            self.emit.load_cell(RCX, slot(SLOT_RCX));
            None
        };
        let on = self.emit.jump_hole();
        match out {
            Some(out) => self.emit.fill(out),
            None => self.emit.load_cell(RCX, slot(SLOT_RCX)),
        }
        let aside = self.reserved();
        self.note(false);
        self.give_back(aside);
        let out = self.emit.jump_hole();
        let stub = self.part(on, aside, number, kind, executed);
        self.emit.fill_to(out, u64::from(stub));
    }

    /// Whether the code that an exit leads to, here in this superblock, needs no flags.
    fn flags_dead_at(&self, kind: ExitKind) -> bool {
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

    /// Numbers an exit, and tells the consumer of it.
    pub(super) fn number_exit(&mut self, executed: u16, fields: u16, taken: bool) -> u32 {
        if let Some(observer) = &mut self.observer {
            observer.shape.exits.push(shape::Exit { executed, fields, taken });
        }
        self.first_exit + self.exits.len() as u32
    }

    /// A tick in the middle of a superblock, where control goes on to the next instruction.
    pub(super) fn inline_tick(&mut self, backward: bool) {
        if !(self.instrumentation.ticks && backward) {
            return;
        }
        let target = self.superblock.guests.get(self.index as usize + 1);
        let flags_dead = target.is_some_and(|guest| guest.live_flags & ARITHMETIC_FLAGS == 0);
        let pc = target.map_or(self.superblock.next, Guest::pc);
        self.count_tick(flags_dead, ExitKind::Direct(pc));
    }

    /// Takes one from the ticks, and leaves when none are left. The branch has happened.
    fn count_tick(&mut self, flags_dead: bool, when_out: ExitKind) {
        let ticks = cell(DIRECT);
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
}
