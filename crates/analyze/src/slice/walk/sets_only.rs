//! The way of most instructions where no edges are kept: the same sets, and nothing noted.
//!
//! Most executions of a large slice are beyond the limit of nodes, or nobody asked for nodes. What
//! is left to do for them is to take definitions out of the set and to put uses in.

use super::Walk;
use crate::dependence::trace::address;
use crate::semantics::{Flow, Meaning, Parts, Side, Span};
use crate::slice::at::Record;
use crate::slice::frames::Pending;
use crate::slice::question::Follow;

/// Reads of one instruction, at most; [`Quick::sets_only`](crate::dependence::block::Quick) knows.
const MOST_READS: usize = crate::dependence::block::MOST_SET_READS;

/// What an instruction wants in turn.
struct Wants {
    parts: Parts,
    reads: [(u64, u64); MOST_READS],
    count: usize,
}

impl Wants {
    fn read(&mut self, address: u64, which: u64) {
        self.reads[self.count] = (address, which);
        self.count += 1;
    }
}

/// Addresses of an instruction's memory operands.
struct Slots<'r> {
    record: &'r Record<'r>,
    index: u16,
}

impl Slots<'_> {
    fn of(&self, slot: u8, span: Span) -> Option<u64> {
        let block = self.record.block;
        let access = block.accesses[block.accesses_of(self.index)].get(usize::from(slot))?;
        let start = address(access, self.record.payload, self.record.when.bases)?;
        Some(start.wrapping_add(span.from.into()))
    }
}

impl Walk<'_> {
    /// Whether only the sets matter from here on.
    pub(super) fn needs_sets_only(&self) -> bool {
        let question = self.question;
        !self.keeps_edges()
            && question.threads.is_empty()
            && question.within.is_none()
            && question.bookkeepers.is_none()
            && question.prune_parts.is_empty()
            && question.prune_memory.is_empty()
    }

    /// Takes what an instruction defines out of the sets, and puts in what it uses.
    pub(super) fn sets_only(&mut self, record: &Record<'_>, index: u16) {
        let id = record.block.instructions[usize::from(index)];
        let trace = self.trace;
        let meaning: &Meaning = &trace.blocks.statics[id as usize].meaning;
        let slots = Slots { record, index };
        let mut wants = Wants { parts: Parts::NONE, reads: [(0, 0); MOST_READS], count: 0 };
        let mut hit = false;
        for flow in &meaning.flows {
            match flow {
                Flow::Copy { to, from } => {
                    let mask = self.take_defined(&slots, *to);
                    if mask != 0 {
                        hit = true;
                        self.want_address(meaning, *to, &mut wants);
                        self.want_used(&slots, meaning, (*from, mask), &mut wants);
                    }
                }
                Flow::Make { parts, write, uses, .. } => {
                    let mut any = self.current.wanted.meets(parts);
                    self.current.wanted = self.current.wanted.without(parts);
                    if let Some(write) = write
                        && self.take_defined(&slots, *write) != 0
                    {
                        any = true;
                        self.want_address(meaning, *write, &mut wants);
                    }
                    if any {
                        hit = true;
                        wants.parts |= uses.values;
                        if self.question.follow == Follow::Full {
                            wants.parts |= uses.conditions;
                        }
                        for read in &uses.reads {
                            let all = u64::MAX >> (64 - u64::from(read.bytes.clamp(1, 64)));
                            self.want_used(&slots, meaning, (*read, all), &mut wants);
                        }
                    }
                }
            }
        }
        self.current.wanted |= wants.parts;
        for (address, which) in &wants.reads[..wants.count] {
            self.memory.add_some(*address, *which);
        }
        if hit {
            self.count(id);
            self.wait_for_deciders(id);
        }
    }

    fn take_defined(&mut self, slots: &Slots<'_>, span: Span) -> u64 {
        if let Side::Memory(slot) = span.side {
            let address = slots.of(slot, span);
            return address.map_or(0, |address| self.memory.take(address, span.bytes.into()));
        }
        let mask = span.bytes_in(&self.current.wanted);
        self.current.wanted = self.current.wanted.without(&span.some_parts(mask));
        mask.into()
    }

    fn want_used(
        &self,
        slots: &Slots<'_>,
        meaning: &Meaning,
        (span, mask): (Span, u64),
        wants: &mut Wants,
    ) {
        match span.side {
            Side::Memory(slot) => {
                let address = slots.of(slot, span);
                if let Some(address) = address {
                    wants.read(address, mask);
                }
                let operand = &meaning.memory[usize::from(slot)];
                let kind = self.question.address_kind(operand.entry, address);
                if self.question.follow.follows(kind) {
                    wants.parts |= operand.address;
                }
            }
            _ => wants.parts |= span.some_parts(mask as u32),
        }
    }

    fn want_address(&self, meaning: &Meaning, span: Span, wants: &mut Wants) {
        if let Side::Memory(slot) = span.side
            && self.question.follow != Follow::Thin
        {
            wants.parts |= meaning.memory[usize::from(slot)].address;
        }
    }

    /// Waits for the branch that decided about an instruction, for nobody in particular.
    pub(super) fn wait_for_deciders(&mut self, id: u32) {
        let Some(node) = self.deciding_node(id) else { return };
        let pending = &mut self.current.frames.top().pending;
        // Neighbours mostly have the same.
        let known = |waiting: &Pending| waiting.node == node;
        if !pending.last().is_some_and(known) && !pending.iter().any(known) {
            pending.push(Pending { node, wanters: Vec::new() });
        }
    }
}
