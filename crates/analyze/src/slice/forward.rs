//! Going forward from a moment: everything that was made from a value.
//!
//! What carries the value (register parts of each thread, bytes of memory) is **marked**. An
//! execution that uses something marked takes part, and marks what it defines; one that does not
//! takes the marks off. So every definition is seen once and the answer is the mirror of a slice
//! that goes back: an execution is in it if and only if the value is in its own slice.
//!
//! Parts: `marks` (what is marked, and by whom), `frames` (who decided about what is executed),
//! `flows` (what an instruction makes of marks), `kernel` (what a system call does).

mod flows;
mod frames;
mod kernel;
mod marks;

use super::at::{At, Record};
use super::graph::{Because, Edge, Kind, Node, Slice, What};
use super::instances::Instances;
use super::members::Members;
use super::question::{Follow, Question};
use super::wanters::Reasons;
use crate::dependence::Trace;
use crate::dependence::system_calls::HANDLER_REGISTERS;
use crate::dependence::trace::{Item, Unwinding, When, address, ranges, slots};
use crate::semantics::{Form, Parts};
use base::StepCount;
use base::Tick;
use flows::Made;
use frames::Frames;
use kernel::Call;
use marks::{Memory, NO_NODE, Registers};
use rustc_hash::FxHashMap;

/// What is known of one thread.
#[derive(Default)]
struct Thread {
    marked: Registers,
    frames: Frames,
    /// The last instruction, if it made a system call.
    call: Option<Call>,
    /// That of the last branch, jump, call or return, if it takes part in deciding.
    led: Option<u32>,
}

/// An execution that may take part: which instruction, when, for which time.
struct Ran {
    instruction: u32,
    moment: StepCount,
    tick: Tick,
    instance: i64,
}

/// A walk forward through a trace.
pub struct Forward<'a> {
    trace: &'a Trace,
    question: &'a Question<'a>,
    number: u32,
    current: Thread,
    others: FxHashMap<u32, Thread>,
    memory: Memory,
    asked: bool,
    slice: Slice,
    members: Members,
    instances: Instances,
}

impl<'a> Forward<'a> {
    /// Begins at the start of the trace.
    pub fn new(trace: &'a Trace, question: &'a Question<'a>) -> Self {
        Self {
            trace,
            question,
            number: 0,
            current: Thread::default(),
            others: FxHashMap::default(),
            memory: Memory::default(),
            asked: false,
            slice: Slice { forward: true, ..Slice::default() },
            members: Members::default(),
            instances: Instances::new(&trace.blocks),
        }
    }

    /// Goes forward to the end, or to where the question says.
    pub fn run(mut self) -> (Slice, Members) {
        let trace = self.trace;
        trace.forward(|when, item| {
            if when.moment < self.question.to {
                self.item(when, item);
            }
        });
        (self.slice, self.members)
    }

    fn item(&mut self, when: When, item: Item<'_>) {
        self.switch(when.thread);
        match item {
            Item::Path { exit: id, payload, explicit } => {
                let exit = &self.trace.blocks.exits[id as usize];
                let block = &self.trace.blocks.blocks[exit.block as usize];
                self.path(&Record { when, exit, block, payload, explicit });
                self.instances.pass(id);
            }
            Item::Syscall { number, arguments, answer } => {
                self.answered(What::Syscall { number, arguments, answer });
            }
            Item::Read(read) => self.kernel_read(ranges(read)),
            Item::Wrote(written) => self.wrote(ranges(written)),
            Item::Unwound { slots: left, by } => {
                slots(left).for_each(|slot| self.current.frames.unwound(slot));
                self.landed(by);
            }
            Item::Handler => {
                self.current.frames.handler(self.current.marked.clone());
                for register in HANDLER_REGISTERS {
                    self.current.marked.clear(Parts::general(register, 0, 8));
                }
            }
            Item::Resumed => {
                if let Some(marks) = self.current.frames.resumed() {
                    self.current.marked = marks;
                }
            }
        }
    }

    fn switch(&mut self, thread: u32) {
        if thread != self.number {
            let next = self.others.remove(&thread).unwrap_or_default();
            let last = std::mem::replace(&mut self.current, next);
            self.others.insert(std::mem::replace(&mut self.number, thread), last);
        }
    }

    fn path(&mut self, record: &Record<'_>) {
        (self.current.led, self.current.call) = (None, None);
        let first = self.question.moment.0.saturating_sub(record.when.moment.0);
        let begun = record.exit.begun();
        let room = self.question.to.0 - record.when.moment.0;
        let end = if room >= record.exit.executed.into() { begun } else { room as u16 };
        if first >= record.exit.executed.into() && !self.asked {
            return self.cross_all(record, end);
        }
        let first = first as u16;
        if !self.asked {
            self.cross_all(record, first);
            self.ask();
        }
        if first == 0 && !self.concerns(record) {
            return self.cross_all(record, end);
        }
        self.slice.walked += u64::from(end - first);
        for index in first..end {
            self.instruction(&self.at(record, index));
        }
    }

    fn at<'r>(&self, record: &'r Record<'r>, index: u16) -> At<'r>
    where
        'a: 'r,
    {
        let id = record.block.instructions[usize::from(index)];
        At { record, index, id, instruction: &self.trace.blocks.statics[id as usize] }
    }

    /// Follows the calls and returns of the first instructions of a record, in which nothing is
    /// marked.
    fn cross_all(&mut self, record: &Record<'_>, end: u16) {
        let crossings = &record.block.crossings[..record.exit.crossings.into()];
        for crossing in crossings.iter().filter(|crossing| crossing.index < end) {
            let at = self.at(record, crossing.index);
            self.cross(&at, None);
        }
    }

    /// Marks what is asked about.
    fn ask(&mut self) {
        self.asked = true;
        let question = self.question;
        self.switch(question.thread);
        let root = if question.nodes > 0 {
            let frame = self.frame();
            self.slice.nodes.push(Node::question(question, frame));
            0
        } else {
            NO_NODE
        };
        self.current.marked.set(self.unpruned(question.wants.parts), root);
        for (address, bytes) in &question.wants.memory {
            self.mark_range(*address, *bytes, root);
        }
    }

    /// Whether the instructions of a record must be looked at one by one.
    fn concerns(&mut self, record: &Record<'_>) -> bool {
        let exit = record.exit;
        if self.current.marked.meets(&(exit.uses | exit.defines))
            || record.block.irregular
            || exit.calls_kernel
            || self.question.follow == Follow::Full && self.current.frames.top().is_decided()
        {
            return true;
        }
        let (memory, saved) = (&mut self.memory, &mut self.current.frames);
        let accesses = &record.block.accesses[..record.block.accesses_upto(exit.begun())];
        accesses.iter().any(|access| {
            address(access, record.payload, record.when.bases).is_some_and(|address| {
                let bytes = access.size.into();
                memory.has(address, bytes) || saved.has_saved(address, bytes)
            })
        })
    }

    fn instruction(&mut self, at: &At<'_>) {
        let (mut found, mut made) = (Reasons::new(), Made::default());
        let decided = self.decided(at);
        if let Some((node, because)) = decided {
            found.push((node, Kind::Control, because));
        }
        let meaning = at.meaning();
        let restored = self.restores(at);
        if !restored {
            self.makes(at, &mut found, &mut made);
        }
        let decision = meaning.decides.as_ref().is_some_and(|uses| self.used(at, uses, &mut found));
        let takes_part = decided.is_some() || decision || made.is_some();
        let node = takes_part.then(|| self.ran(at));
        let node = node.and_then(|ran| self.include(&ran, &found));
        made.keep(node.is_some());
        if node.is_some() && decided.is_some() {
            made.all(meaning.frame);
        }
        if !restored {
            self.define(at, &made, node);
        }
        let led = node.filter(|_| decided.is_some() || decision);
        self.current.led = led;
        match meaning.form {
            Form::Call(_) | Form::IndirectCall | Form::Return => self.cross(at, led),
            Form::Branch(_) | Form::IndirectJump | Form::Jump(_) => self.branch(at, led),
            Form::Syscall => self.current.call = Some(self.calls(at, led)),
            _ => {}
        }
    }

    /// The execution that decided about this one, if it takes part.
    fn decided(&mut self, at: &At<'_>) -> Option<(u32, Because)> {
        let control = self.question.control.filter(|_| self.question.follow == Follow::Full)?;
        self.current.frames.top().decided(control, at.id)
    }

    fn branch(&mut self, at: &At<'_>, led: Option<u32>) {
        let Some(control) = self.question.control else { return };
        let top = self.current.frames.top();
        if control.leaves(at.id) {
            top.tail(led);
        } else {
            top.branch(at.instruction.pc, led);
        }
    }

    /// A jump landed in the innermost frame: it decides instead of the call that it left, or if a
    /// signal had interrupted the frame, about all that follows.
    fn landed(&mut self, by: Unwinding) {
        let (top, led) = (self.current.frames.top(), self.current.led);
        match by {
            Unwinding::Call(call) => {
                if self.question.control.is_some_and(|control| control.branches(call)) {
                    top.branch(self.trace.blocks.statics[call as usize].pc, led);
                }
            }
            Unwinding::Signal => top.tail(led),
            Unwinding::Unnoticed => {}
        }
    }

    fn cross(&mut self, at: &At<'_>, led: Option<u32>) {
        if self.question.control.is_some_and(|control| control.branches(at.id)) {
            self.current.frames.top().branch(at.instruction.pc, led);
        }
        let crossings = &at.record.block.crossings;
        let Some(crossing) = crossings.iter().find(|crossing| crossing.index == at.index) else {
            return;
        };
        let access = &at.record.block.accesses[usize::from(crossing.access)];
        let Some(slot) = address(access, at.record.payload, at.record.when.bases) else { return };
        if crossing.call {
            let instance = self.instances.forwards(&self.trace.blocks, at);
            self.current.frames.call(slot, led, (at.id, instance as i64, at.moment()));
        } else {
            self.current.frames.returns(slot);
        }
    }

    /// An execution. Which one it is matters only if it is kept.
    fn ran(&mut self, at: &At<'_>) -> Ran {
        let (blocks, kept) = (&self.trace.blocks, self.slice.nodes.len() < self.question.nodes);
        let instance = if kept { self.instances.forwards(blocks, at) as i64 } else { 0 };
        let (moment, tick) = (at.moment(), at.tick(blocks));
        Ran { instruction: at.id, moment, tick, instance }
    }

    /// Takes an execution into the slice; its node if what it makes is followed.
    fn include(&mut self, ran: &Ran, found: &Reasons) -> Option<u32> {
        let threads = &self.question.threads;
        if !threads.is_empty() && !threads.contains(&self.number) {
            return None;
        }
        *self.slice.counts.entry((self.number, ran.instruction)).or_insert(0) += 1;
        self.members.add(ran.moment);
        let node = self.node(ran, found);
        let kept = self.slice.nodes.get(node as usize);
        kept.is_none_or(|kept| kept.depth < self.question.depth).then_some(node)
    }

    fn node(&mut self, ran: &Ran, found: &Reasons) -> u32 {
        if self.slice.nodes.len() >= self.question.nodes {
            self.slice.cut |= self.question.nodes > 0;
            return NO_NODE;
        }
        let frame = self.frame();
        let kept = found.iter().filter(|(on, ..)| *on != NO_NODE);
        let depth = kept.clone().map(|(on, ..)| self.slice.nodes[*on as usize].depth + 1).min();
        self.slice.nodes.push(Node {
            what: What::Executed,
            instruction: Some(ran.instruction),
            thread: self.number,
            moment: ran.moment,
            tick: Some(ran.tick),
            instance: ran.instance,
            frame,
            depth: depth.unwrap_or(1),
        });
        let user = self.slice.nodes.len() as u32 - 1;
        let edge = |(on, kind, because): &(u32, Kind, Because)| Edge {
            user,
            on: *on,
            kind: *kind,
            because: *because,
        };
        self.slice.edges.extend(kept.map(edge));
        user
    }

    /// The number of the innermost frame.
    fn frame(&mut self) -> u32 {
        self.current.frames.number(&mut self.slice.frames)
    }

    fn unpruned(&self, parts: Parts) -> Parts {
        parts.without(&self.question.prune_parts)
    }

    fn mark_range(&mut self, address: u64, bytes: u64, node: u32) {
        for from in (0..bytes).step_by(64) {
            let count = (bytes - from).min(64);
            let which = if count == 64 { u64::MAX } else { (1 << count) - 1 };
            self.mark(address.wrapping_add(from), which, node);
        }
    }

    fn mark(&mut self, address: u64, which: u64, node: u32) {
        let which = self.question.unpruned(address, which);
        self.memory.set(address, which, node, self.question.nodes > 0);
    }
}
