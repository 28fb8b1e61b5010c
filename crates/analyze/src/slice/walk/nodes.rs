//! The answer as it grows: executions, the edges between them, and what they want.

use super::{Input, NO_NODE, Next, Walk};
use crate::dependence::system_calls;
use crate::semantics::Parts;
use crate::slice::at::At;
use crate::slice::graph::{Because, Edge, Kind, Node, What};
use crate::slice::wanters::Reasons;
use base::StepCount;
use base::Tick;

/// What a system call was given: registers, and memory that they point to.
fn given(input: &Input) -> Next {
    let mut next = Next::default();
    let What::Syscall { number, answer, .. } = input.what else { return next };
    let takes = system_calls::takes(number, answer);
    let numbers = if input.answer { Kind::Value } else { Kind::Address };
    next.parts(numbers, takes.values);
    next.parts(Kind::Address, takes.places);
    input.reads.iter().for_each(|(address, bytes)| next.range(*address, *bytes));
    next
}

const KINDS: [Kind; 3] = [Kind::Value, Kind::Address, Kind::Control];

/// What executed, and when.
pub(super) struct Ran {
    pub instruction: Option<u32>,
    pub moment: StepCount,
    pub tick: Option<Tick>,
}

impl Ran {
    /// Where it stands is of interest only if it is kept.
    fn of(walk: &Walk<'_>, at: &At<'_>) -> Self {
        let tick = walk.keeps_edges().then(|| at.tick(&walk.trace.blocks));
        Self { instruction: Some(at.id), moment: at.moment(), tick }
    }
}

impl Walk<'_> {
    pub(super) fn keeps_edges(&self) -> bool {
        !self.slice.cut && self.question.nodes > 0
    }

    /// Takes an instruction into the slice; `decided` if someone waited for where it leads.
    pub(super) fn include(&mut self, at: &At<'_>, found: &Reasons, next: &mut Next, decided: bool) {
        if !self.takes_part(at.moment()) {
            return;
        }
        self.count(at.id);
        let instance = if self.keeps_edges() { self.instance(at) } else { 0 };
        let node = self.node(What::Executed, Ran::of(self, at), instance, found);
        if !self.expands(node) {
            return;
        }
        if decided && let Some(uses) = &at.meaning().decides {
            self.use_all(at, uses, next);
        }
        if self.is_bookkeeper(at.id) {
            next.memory.clear();
        }
        self.want(next, node);
        self.wait(at, node);
    }

    /// Whether an execution of the current thread at this moment may be in the answer.
    pub(super) fn takes_part(&self, moment: StepCount) -> bool {
        let threads = &self.question.threads;
        (threads.is_empty() || threads.contains(&self.number))
            && self.question.within.is_none_or(|within| within.has(moment))
    }

    pub(super) fn count(&mut self, id: u32) {
        let counts = &mut self.current.counts;
        if counts.len() <= id as usize {
            counts.resize(self.trace.blocks.statics.len(), 0);
        }
        counts[id as usize] += 1;
    }

    /// The instruction of a system call that brought something in.
    pub(super) fn complete(&mut self, at: &At<'_>, input: &Input) {
        if self.takes_part(at.moment()) {
            self.count(at.id);
            let instance = if self.keeps_edges() { self.instance(at) } else { 0 };
            let node = self.node(input.what, Ran::of(self, at), instance, &input.found);
            if self.expands(node) {
                self.want(&given(input), node);
                self.wait(at, node);
            }
        }
    }

    /// Whether what a node depends on is looked for.
    fn expands(&self, node: u32) -> bool {
        let kept = self.slice.nodes.get(node as usize);
        kept.is_none_or(|kept| kept.depth < self.question.depth)
    }

    pub(super) fn node(&mut self, what: What, ran: Ran, instance: i64, found: &Reasons) -> u32 {
        if !self.keeps_edges() {
            return NO_NODE;
        }
        if self.slice.nodes.len() >= self.question.nodes {
            self.slice.cut = true;
            self.wanters.clear();
            return NO_NODE;
        }
        let (thread, frame) = (self.number, self.frame());
        let depth = |user: &(u32, Kind, Because)| self.slice.nodes[user.0 as usize].depth + 1;
        let depth = found.iter().map(depth).min().unwrap_or(1);
        let Ran { instruction, moment, tick } = ran;
        let node = Node { what, instruction, thread, moment, tick, instance, frame, depth };
        self.slice.nodes.push(node);
        let node = self.slice.nodes.len() as u32 - 1;
        self.connect(node, found);
        node
    }

    pub(super) fn connect(&mut self, on: u32, found: &Reasons) {
        if on != NO_NODE {
            let edge = |(user, kind, because): &(u32, Kind, Because)| Edge {
                user: *user,
                on,
                kind: *kind,
                because: *because,
            };
            self.slice.edges.extend(found.iter().map(edge));
        }
    }

    /// Adds to the set what a node wants in turn.
    pub(super) fn want(&mut self, next: &Next, node: u32) {
        let keeps = node != NO_NODE && self.keeps_edges();
        let (follow, pruned) = (self.question.follow, self.question.prune_parts);
        let mut all = Parts::NONE;
        for (kind, parts) in KINDS.into_iter().zip(next.parts) {
            if follow.follows(kind) {
                all |= parts;
            }
        }
        self.current.wanted |= all.without(&pruned);
        for (address, which, _) in &next.memory {
            self.memory.add_some(*address, self.question.unpruned(*address, *which));
        }
        if keeps {
            self.note_wanter(next, node);
        }
    }

    fn note_wanter(&mut self, next: &Next, node: u32) {
        for (kind, parts) in KINDS.into_iter().zip(next.parts) {
            let parts = parts.without(&self.question.prune_parts);
            if self.question.follow.follows(kind) {
                self.wanters.want_parts(self.number, parts, node, kind);
            }
        }
        for (address, which, kind) in &next.memory {
            let which = self.question.unpruned(*address, *which);
            self.wanters.want_bytes(*address, which, node, *kind);
        }
    }

    pub(super) fn is_foreign(&mut self, id: u32) -> bool {
        let Some(foreign) = self.question.foreign else { return false };
        let pc = self.trace.blocks.statics[id as usize].pc;
        *self.foreign.entry(id).or_insert_with(|| foreign(pc))
    }

    fn is_bookkeeper(&mut self, id: u32) -> bool {
        let Some(bookkeepers) = self.question.bookkeepers else { return false };
        let pc = self.trace.blocks.statics[id as usize].pc;
        *self.bookkeepers.entry(id).or_insert_with(|| bookkeepers(pc))
    }

    /// Which execution of its instruction this is, in the window.
    pub(super) fn instance(&mut self, at: &At<'_>) -> i64 {
        let (blocks, taken) = (&self.trace.blocks, &self.trace.taken);
        let number = self.instances.backwards(blocks, taken, at);
        if self.trace.is_tail {
            number as i64 - self.instances.all(blocks, taken, at.id) as i64 - 1
        } else {
            number as i64
        }
    }
}
