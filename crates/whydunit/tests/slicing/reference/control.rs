//! Frames, and who decided about what is executed in them: a stack of open regions in each. A frame
//! is gone when the stack pointer is above its return address.

use super::stack::Registers;
use super::{Execution, Reference};
use analyze::dependence::control::Node;
use analyze::semantics::{Form, Parts};
use std::collections::{BTreeSet, HashMap};

/// An active call.
pub struct Frame {
    pub id: usize,
    /// Where its return address is.
    slot: u64,
    /// Open regions: deciding execution, node that ends it.
    open: Vec<(usize, Option<u32>)>,
    /// The call.
    call: Option<usize>,
    /// Who decided about it: the call, or a jump instead of one.
    called_by: Option<usize>,
    /// Of a signal handler: what registers are made by, and hold, when it has returned.
    interrupted: Option<(HashMap<u8, usize>, Registers)>,
}

impl Frame {
    /// A frame that nobody called.
    pub fn root(id: usize) -> Self {
        let (open, slot) = (Vec::new(), u64::MAX);
        Self { id, slot, open, call: None, called_by: None, interrupted: None }
    }
}

impl Reference<'_> {
    /// An execution begins: which one decided about it?
    pub(super) fn begin(&mut self, pc: u64, moment: u64, instruction: bool) -> usize {
        let by = self.executions.len();
        let node = self.control.node(pc);
        let starts = node.is_some_and(|node| self.control.nodes()[node as usize].start == pc);
        let top = self.top();
        if starts {
            while top.open.last().is_some_and(|(_, ends)| *ends == node) {
                top.open.pop();
            }
        }
        let decided_by = top.open.last().map(|(by, _)| *by).or(top.called_by);
        let thread = self.thread;
        let decision = Vec::new();
        self.executions.push(Execution { pc, thread, decided_by, decision, instruction });
        self.moments.push(moment);
        by
    }

    /// The stack pointer of the thread is here. Behind a return or an indirect jump, frames whose
    /// return address is below it are gone. A jump that does so decides instead of the call that it
    /// left, or in a frame that a signal had interrupted, about all that follows.
    pub(super) fn settle(&mut self, stack: u64) {
        let last = self.thread().last;
        let form = if last == usize::MAX { Form::Plain } else { self.form(last) };
        if !matches!(form, Form::Return | Form::IndirectJump) {
            return;
        }
        let thread = self.thread();
        let first =
            thread.frames.iter().rposition(|frame| frame.slot >= stack).map_or(0, |f| f + 1);
        let gone: Vec<Frame> = thread.frames.drain(first..).collect();
        let returned = gone.len() < 2 && form == Form::Return;
        match gone.first() {
            // Out of a frame of which nothing is known.
            None if returned && self.top().slot == u64::MAX => {
                self.frames += 1;
                *self.top() = Frame::root(self.frames);
            }
            None => {}
            Some(_) if returned => {}
            Some(outermost) if outermost.interrupted.is_some() => {
                let top = self.top();
                top.open.clear();
                top.called_by = Some(last);
            }
            Some(outermost) => {
                let left = outermost.call;
                if let Some(region) = self.top().open.last_mut().filter(|r| Some(r.0) == left) {
                    region.0 = last;
                }
            }
        }
    }

    /// A signal handler comes; the kernel gives it its arguments, and when it returns registers are
    /// what they were.
    pub(super) fn handle(&mut self, stack: u64, slot: u64) {
        self.settle(stack);
        self.frames += 1;
        let registers = *self.machine.registers(self.thread);
        self.machine.handler(self.thread, slot);
        // It returns to what calls the kernel, and is gone when that has been done.
        let mut frame = Frame { slot: slot + 8, ..Frame::root(self.frames) };
        let thread = self.thread();
        frame.interrupted = Some((thread.parts.clone(), registers));
        thread.frames.push(frame);
        thread.last = usize::MAX;
        for register in [0, 7, 6, 2] {
            for part in Parts::general(register, 0, 8).iter() {
                thread.parts.remove(&part);
            }
        }
    }

    /// A handler returns.
    pub(super) fn resume(&mut self) {
        let (number, thread) = (self.thread, self.thread());
        thread.last = usize::MAX;
        while let Some(frame) = thread.frames.pop() {
            if let Some((parts, registers)) = frame.interrupted {
                thread.parts = parts;
                *self.machine.registers(number) = registers;
                break;
            }
        }
    }

    /// Frames and regions after an instruction.
    pub(super) fn go(&mut self, by: usize, pc: u64, form: Form) {
        let node = self.control.node(pc);
        match form {
            Form::Call(_) | Form::IndirectCall => {
                self.open_region(by, node);
                self.frames += 1;
                let slot = self.machine.stack(self.thread).expect("a call tells");
                let root = Frame::root(self.frames);
                let frame = Frame { slot, call: Some(by), called_by: Some(by), ..root };
                self.thread().frames.push(frame);
            }
            Form::Jump(_) | Form::IndirectJump if self.control.is_tail(pc) => {
                let top = self.top();
                top.open.clear();
                top.called_by = Some(by);
            }
            Form::Branch(_) | Form::IndirectJump => self.open_region(by, node),
            _ => {}
        }
    }

    /// If an instruction is one that decides, it does so until all its ways have met.
    fn open_region(&mut self, by: usize, node: Option<u32>) {
        let ways = |node: u32| &self.control.nodes()[node as usize];
        let pc = self.executions[by].pc;
        let Some(node) = node.filter(|node| ways(*node).decides() && ways(*node).last == pc) else {
            return;
        };
        let ends = self.comes_after(node);
        self.top().open.push((by, ends));
    }

    /// The first node that every way from `node` to an exit goes through, by definition.
    fn comes_after(&mut self, node: u32) -> Option<u32> {
        if let Some(known) = self.after.get(&node) {
            return *known;
        }
        let nodes = self.control.nodes();
        let reachable = reachable(nodes, node, None);
        let certain: Vec<u32> = reachable
            .iter()
            .copied()
            .filter(|other| *other != node && !escapes(nodes, node, Some(*other)))
            .collect();
        // Of those, the one that comes before all others.
        let first = certain.iter().copied().find(|first| {
            certain.iter().all(|other| other == first || !escapes(nodes, *first, Some(*other)))
        });
        self.after.insert(node, first);
        first
    }
}

fn reachable(nodes: &[Node], from: u32, without: Option<u32>) -> BTreeSet<u32> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(node) = open.pop() {
        if Some(node) != without && seen.insert(node) {
            open.extend(&nodes[node as usize].next);
        }
    }
    seen
}

/// Whether an exit can be reached without passing a node. A part of the graph without any exit is
/// left at its first node.
fn escapes(nodes: &[Node], from: u32, without: Option<u32>) -> bool {
    if Some(from) == without {
        return false;
    }
    let seen = reachable(nodes, from, without);
    seen.iter().any(|node| nodes[*node as usize].leaves || is_lost_first(nodes, *node))
}

/// Whether no exit can be reached from here, and the node is the first of such.
fn is_lost_first(nodes: &[Node], node: u32) -> bool {
    let reach = reachable(nodes, node, None);
    let lost = |node: u32| !reachable(nodes, node, None).iter().any(|n| nodes[*n as usize].leaves);
    !reach.iter().any(|node| nodes[*node as usize].leaves)
        && (0..node).all(|before| !reachable(nodes, before, None).contains(&node) || !lost(before))
        && reach.iter().all(|other| *other >= node || !lost(*other))
}
