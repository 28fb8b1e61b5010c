//! Calls, decisions and saved registers, going back.

use super::{NO_NODE, Walk};
use crate::dependence::control::NO_CONTROL;
use crate::dependence::system_calls::HANDLER_REGISTERS;
use crate::dependence::trace::{Unwinding, address};
use crate::semantics::{Form, Parts, Shuttle};
use crate::slice::at::At;
use crate::slice::frames::{Pending, Restore};
use crate::slice::graph::{Because, Frame, Kind};
use crate::slice::question::Follow;
use crate::slice::wanters::Reasons;

/// Bytes below a return address that are taken for the frame of what was called.
const LARGEST_FRAME: u64 = 4096;

impl Walk<'_> {
    /// Follows calls, returns and branches; whether someone waited for this one.
    pub(super) fn control(&mut self, at: &At<'_>, found: &mut Reasons) -> bool {
        let form = at.meaning().form;
        match form {
            Form::Call(_) | Form::IndirectCall | Form::Return => self.cross(at, found),
            Form::Branch(_) | Form::IndirectJump | Form::Jump(_) => self.decides(at, found),
            _ => false,
        }
    }

    pub(super) fn decides(&mut self, at: &At<'_>, found: &mut Reasons) -> bool {
        let Some(control) = self.question.control else { return false };
        let top = self.current.frames.top();
        if top.pending.is_empty() {
            return false;
        }
        let pc = at.instruction.pc;
        let tail = control.leaves(at.id);
        let because = if tail { Because::Call } else { Because::Branch };
        let decided = top.take_pending(|node| tail || control.decides(pc, node));
        let wanters = decided.iter().flat_map(|pending| &pending.wanters);
        found.extend(wanters.map(|node| (*node, Kind::Control, because)));
        !decided.is_empty()
    }

    /// A jump landed in the innermost frame: it decided about what the call that it left would
    /// have decided. Of what a signal interrupted it decided about all that follows.
    pub(super) fn landed(&mut self, by: Unwinding) {
        let Some(control) = self.question.control else { return };
        let call = match by {
            Unwinding::Call(call) => Some(self.trace.blocks.statics[call as usize].pc),
            Unwinding::Signal => None,
            Unwinding::Unnoticed => return,
        };
        let top = self.current.frames.top();
        let decided = top.take_pending(|node| call.is_none_or(|pc| control.decides(pc, node)));
        if !decided.is_empty() {
            let wanters = decided.into_iter().flat_map(|pending| pending.wanters);
            self.current.landed.get_or_insert_default().extend(wanters);
        }
    }

    /// Whether someone waits for this instruction as a jump that landed.
    pub(super) fn has_landed(&mut self, found: &mut Reasons) -> bool {
        let Some(wanters) = self.current.landed.take() else { return false };
        found.extend(wanters.iter().map(|node| (*node, Kind::Control, Because::Branch)));
        true
    }

    /// Follows a call or return; whether someone waited for the call.
    pub(super) fn cross(&mut self, at: &At<'_>, found: &mut Reasons) -> bool {
        let crossings = &at.record.block.crossings;
        let Some(crossing) = crossings.iter().find(|crossing| crossing.index == at.index) else {
            return false;
        };
        let access = &at.record.block.accesses[usize::from(crossing.access)];
        let Some(slot) = address(access, at.record.payload, at.record.when.bases) else {
            return false;
        };
        if !crossing.call {
            self.current.frames.enter(slot, false);
            return false;
        }
        let mut hit = false;
        for frame in self.current.frames.leave(slot) {
            if let Some(id) = frame.id {
                let caller = Some((self.frame(), at.id, self.instance(at), at.moment()));
                self.slice.frames[id as usize] = Frame { caller, slot };
                if self.open_frames.remove(&id) && self.is_foreign(at.id) {
                    let parent = self.frame();
                    self.open_frames.insert(parent);
                }
            }
            self.refuted.extend(frame.restores.iter().map(|restore| restore.moment));
            hit |= !frame.pending.is_empty();
            let wanters = frame.pending.iter().flat_map(|pending| &pending.wanters);
            found.extend(wanters.map(|node| (*node, Kind::Control, Because::Call)));
        }
        if self.question.frames_begin_empty {
            self.begins_empty(slot);
        }
        let branches = self.question.control.is_some_and(|control| control.branches(at.id));
        hit | (branches && self.decides(at, found))
    }

    /// Before a call everything below its return address is dead: what is still wanted of it was never written.
    fn begins_empty(&mut self, slot: u64) {
        let lowest = slot.saturating_sub(LARGEST_FRAME);
        if !self.memory.has_between(lowest, slot) {
            return;
        }
        for (address, bytes) in self.memory.take_range(lowest, slot - lowest) {
            let mut found = Reasons::new();
            if self.keeps_edges() {
                (0..bytes).for_each(|at| self.wanters.take_bytes(address + at, 1, &mut found));
            }
            let users = found.into_iter().filter(|(_, kind, _)| *kind == Kind::Value);
            self.slice.unwritten.extend(users.map(|(node, ..)| (node, address)));
        }
    }

    /// A handler returned: registers are what they were before it came, whatever it did with them.
    pub(super) fn resumed(&mut self) {
        let mut found = Reasons::new();
        let wanted = self.current.wanted;
        self.take_parts(wanted, &mut found);
        self.current.frames.enter(0, true);
        self.current.frames.top().interrupted = (wanted, found);
    }

    /// A handler was entered. The kernel gave it its arguments, and all else is as it was.
    pub(super) fn handled(&mut self) {
        for register in HANDLER_REGISTERS {
            self.take_parts(Parts::general(register, 0, 8), &mut Reasons::new());
        }
        for frame in self.current.frames.leave_handler() {
            if let Some(id) = frame.id {
                self.open_frames.remove(&id);
            }
            self.refuted.extend(frame.restores.iter().map(|restore| restore.moment));
            let (parts, wanters) = frame.interrupted;
            self.current.wanted |= parts;
            if self.keeps_edges() {
                for (node, kind, because) in wanters {
                    let Because::Parts(parts) = because else { continue };
                    self.wanters.want_parts(self.number, parts, node, kind);
                }
            }
        }
    }

    /// Whether the instruction restores a register; its saving is looked for instead.
    pub(super) fn restores(&mut self, at: &At<'_>) -> bool {
        let Some(Shuttle::Restore(register)) = at.meaning().shuttle else { return false };
        let parts = Parts::general(register, 0, 8) & self.current.wanted;
        if !self.bypass || parts.is_empty() || self.not_restores.contains(&at.moment().0) {
            return false;
        }
        let Some(address) = at.slot(0) else { return false };
        let mut wanters = Reasons::new();
        self.take_parts(parts, &mut wanters);
        self.saved.add(address, 8);
        let moment = at.moment().0;
        let restore = Restore { address, register, parts, moment, wanters };
        self.current.frames.top().restores.push(restore);
        true
    }

    /// Whether an instruction stores where a register was restored from: the saving of that
    /// register in the same frame, or the restore was none.
    pub(super) fn saves(&mut self, at: &At<'_>) {
        for slot in at.meaning().writes() {
            let (Some(address), bytes) =
                (at.slot(slot), at.meaning().memory[usize::from(slot)].bytes)
            else {
                continue;
            };
            if !self.saved.has(address, bytes.into()) {
                continue;
            }
            let saved = match at.meaning().shuttle {
                Some(Shuttle::Save(register)) => self.current.frames.saved(address, register),
                _ => None,
            };
            match saved {
                Some(restore) => {
                    self.saved.take(address, 8);
                    self.slice.bypassed += 1;
                    self.current.wanted |= restore.parts;
                    if !self.slice.cut && self.question.nodes > 0 {
                        for (node, kind, _) in restore.wanters {
                            self.wanters.want_parts(self.number, restore.parts, node, kind);
                        }
                    }
                }
                None => {
                    self.refute(address, bytes.into());
                    self.saved.take(address, bytes.into());
                }
            }
        }
    }

    /// Someone else stored where registers were restored from.
    pub(super) fn refute(&mut self, address: u64, bytes: u64) {
        let threads = self.others.values().chain([&self.current]);
        for thread in threads {
            self.refuted.extend(thread.frames.overlapping(address, bytes));
        }
    }

    /// The node of the control graph whose deciding branch an instruction waits for.
    #[inline]
    pub(super) fn deciding_node(&self, id: u32) -> Option<u32> {
        let full = self.question.follow == Follow::Full;
        let control = self.question.control.filter(|_| full)?;
        Some(control.node_of(id)).filter(|node| *node != NO_CONTROL)
    }

    /// Waits for the branch that decided about an instruction.
    pub(super) fn wait(&mut self, at: &At<'_>, node: u32) {
        if node != NO_NODE && self.is_foreign(at.id) {
            let frame = self.frame();
            self.open_frames.insert(frame);
        }
        let Some(decided) = self.deciding_node(at.id) else { return };
        let top = self.current.frames.top();
        let known = top.pending.iter_mut().find(|pending| pending.node == decided);
        let wanters = match known {
            Some(pending) => &mut pending.wanters,
            None => {
                top.pending.push(Pending { node: decided, wanters: Vec::new() });
                &mut top.pending.last_mut().expect("just added").wanters
            }
        };
        if node != NO_NODE {
            wanters.push(node);
        }
    }

    /// The number of the innermost frame, which is of interest from now on.
    pub(super) fn frame(&mut self) -> u32 {
        let (top, frames) = (self.current.frames.top(), &mut self.slice.frames);
        *top.id.get_or_insert_with(|| {
            frames.push(Frame { caller: None, slot: top.slot });
            frames.len() as u32 - 1
        })
    }
}
