//! The frames of a thread going forward, with who decided about what is executed in each.
//!
//! Only decisions that take part matter, and those that came after one of them: an instruction
//! whose last deciding branch is not among those does not take part for the sake of control.

use super::marks::Registers;
use crate::dependence::calls::HANDLER;
use crate::dependence::control::{Control, NO_CONTROL};
use crate::dependence::wanted::Wanted;
use crate::slice::graph::{self, Because};
use base::StepCount;

/// An active call.
#[derive(Default)]
pub struct Frame {
    /// Its number in the slice, if a node is in it.
    number: Option<u32>,
    /// The call: instruction, which execution, when.
    caller: Option<(u32, i64, StepCount)>,
    /// Address of its return address; 0 if not known.
    slot: u64,
    handler: bool,
    /// The call (or the jump instead of one), if that takes part.
    called: Option<u32>,
    /// Branches by their last execution, the latest last: address, node if it takes part.
    branches: Vec<(u64, Option<u32>)>,
    /// Registers saved here with marks: address, register, marks.
    saved: Vec<(u64, u8, Registers)>,
    /// Of a signal handler: marks of the registers that it interrupted.
    interrupted: Registers,
}

impl Frame {
    /// Whether anything that is executed here may do so because of a decision that takes part.
    pub fn is_decided(&self) -> bool {
        self.called.is_some() || !self.branches.is_empty()
    }

    /// The decision that an instruction is executed because of, if it takes part.
    pub fn decided(&self, control: &Control, instruction: u32) -> Option<(u32, Because)> {
        if !self.is_decided() {
            return None;
        }
        let node = control.node_of(instruction);
        if node == NO_CONTROL {
            return None;
        }
        match self.branches.iter().rfind(|(pc, _)| control.decides(*pc, node)) {
            Some((_, led)) => led.map(|node| (node, Because::Branch)),
            None => self.called.map(|node| (node, Because::Call)),
        }
    }

    /// A branch was executed.
    pub fn branch(&mut self, pc: u64, led: Option<u32>) {
        if led.is_some() || self.is_decided() {
            self.branches.retain(|(other, _)| *other != pc);
            self.branches.push((pc, led));
        }
    }

    /// A jump left the function: what follows is executed because of it.
    pub fn tail(&mut self, led: Option<u32>) {
        self.branches.clear();
        self.called = led;
    }
}

/// The frames of a thread, outermost first; never empty once asked for.
#[derive(Default)]
pub struct Frames {
    stack: Vec<Frame>,
    /// Where registers with marks were saved.
    saved: Wanted,
}

impl Frames {
    /// The innermost frame.
    pub fn top(&mut self) -> &mut Frame {
        if self.stack.is_empty() {
            self.stack.push(Frame::default());
        }
        self.stack.last_mut().expect("just added")
    }

    /// A call.
    pub fn call(&mut self, slot: u64, called: Option<u32>, caller: (u32, i64, StepCount)) {
        self.top();
        self.stack.push(Frame { slot, called, caller: Some(caller), ..Frame::default() });
    }

    /// A return: to the frame of the call, or to one of which nothing is known.
    pub fn returns(&mut self, slot: u64) {
        let top = self.top();
        if !top.handler && (top.slot == slot || top.slot == 0) {
            self.stack.pop();
        }
    }

    /// A frame was left without returning: that of a call or of a handler.
    pub fn unwound(&mut self, slot: u64) {
        self.stack.pop_if(|frame| frame.handler == (slot == HANDLER) && frame.slot == slot);
    }

    /// A signal handler is entered; registers had these marks.
    pub fn handler(&mut self, interrupted: Registers) {
        self.top();
        self.stack.push(Frame { handler: true, interrupted, ..Frame::default() });
    }

    /// A signal handler returned to what it interrupted: the marks that registers had then.
    pub fn resumed(&mut self) -> Option<Registers> {
        let at = self.stack.iter().rposition(|frame| frame.handler)?;
        let marks = std::mem::take(&mut self.stack[at].interrupted);
        self.stack.truncate(at);
        Some(marks)
    }

    /// The number of the innermost frame in the slice, which gets one with all that called it.
    pub fn number(&mut self, frames: &mut Vec<graph::Frame>) -> u32 {
        self.top();
        let mut outer = None;
        for frame in &mut self.stack {
            let number = *frame.number.get_or_insert_with(|| {
                let call = outer.zip(frame.caller);
                let caller = call.map(|(outer, (id, instance, at))| (outer, id, instance, at));
                frames.push(graph::Frame { caller, slot: frame.slot });
                frames.len() as u32 - 1
            });
            outer = Some(number);
        }
        outer.unwrap_or_default()
    }

    /// Whether a register was saved in any of these bytes.
    pub fn has_saved(&mut self, address: u64, bytes: u64) -> bool {
        self.saved.has(address, bytes)
    }

    /// The innermost frame saves a register.
    pub fn save(&mut self, address: u64, register: u8, marks: Registers) {
        self.saved.add(address, 8);
        self.top().saved.push((address, register, marks));
    }

    /// Something is stored where a register may have been saved.
    pub fn overwrite(&mut self, address: u64, bytes: u64) {
        if !self.saved.has(address, bytes) {
            return;
        }
        let apart = |at: u64| address >= at.wrapping_add(8) || at >= address.saturating_add(bytes);
        for frame in &mut self.stack {
            frame.saved.retain(|(at, ..)| apart(*at));
        }
        self.saved.take_range(address, bytes);
    }

    /// A register is restored in the innermost frame: what it was when it was saved.
    pub fn restored(&mut self, address: u64, register: u8) -> Option<Registers> {
        let saved = &self.top().saved;
        let found = saved.iter().rfind(|(at, of, _)| (*at, *of) == (address, register))?;
        Some(found.2.clone())
    }
}
