//! The way of most instructions where no edges are kept, by their definitions in compact form.

use super::Walk;
use crate::dependence::block::{Quick, Relevance};
use crate::dependence::compact::{Bytes, Definition, MOST_READS, Way};
use crate::dependence::trace::address;
use crate::semantics::{general_bits, general_bytes};
use crate::slice::at::Record;
use crate::slice::graph::Kind;
use crate::slice::question::Follow;

/// What is wanted of registers, and what an instruction wants in turn.
struct Sets {
    general: u64,
    single: u64,
    next_general: u64,
    next_single: u64,
    reads: [(u64, u64); MOST_READS],
    count: usize,
}

impl Walk<'_> {
    /// Takes what an instruction defines out of the sets and puts in what it uses; or finds that
    /// more must be looked at.
    #[inline]
    pub(super) fn fast_path(&mut self, record: &Record<'_>, index: u16, quick: &Quick) -> bool {
        let id = record.block.instructions[usize::from(index)];
        match quick.relevance {
            Relevance::Defines if !quick.defines.meets(&self.current.wanted) => return true,
            Relevance::Stores if self.touches_saved(record, index, quick.relevance) => {
                return false;
            }
            Relevance::Decides if !self.is_decided(id) => return true,
            _ => {}
        }
        let [general, .., single] = self.current.wanted.0;
        let mut sets = Sets {
            general,
            single,
            next_general: 0,
            next_single: 0,
            reads: [(0, 0); MOST_READS],
            count: 0,
        };
        let (trace, decided) = (self.trace, quick.relevance == Relevance::Decides);
        let mut hit = decided;
        for definition in trace.blocks.compact(quick) {
            hit |= self.define(record, index, (definition, decided), &mut sets);
        }
        if !hit {
            return true;
        }
        self.current.wanted.0[0] = sets.general | sets.next_general;
        self.current.wanted.0[3] = sets.single | sets.next_single;
        for (address, which) in &sets.reads[..sets.count] {
            self.memory.add_some(*address, *which);
        }
        self.count(id);
        self.wait_for_deciders(id);
        true
    }

    /// Whether someone waited for a branch; no more from here on.
    fn is_decided(&mut self, id: u32) -> bool {
        let pending = &mut self.current.frames.top().pending;
        let Some(control) = self.question.control.filter(|_| !pending.is_empty()) else {
            return false;
        };
        let (tail, before) = (control.leaves(id), pending.len());
        let pc = self.trace.blocks.statics[id as usize].pc;
        pending.retain(|pending| !tail && !control.decides(pc, pending.node));
        pending.len() < before
    }

    /// One definition, or a decision that was waited for; whether anything of it was wanted.
    #[inline]
    fn define(
        &mut self,
        record: &Record<'_>,
        index: u16,
        (definition, decided): (&Definition, bool),
        sets: &mut Sets,
    ) -> bool {
        let at = |bytes: Bytes| {
            let accesses = &record.block.accesses[record.block.accesses_of(index)];
            let access = accesses.get(usize::from(bytes.slot))?;
            let start = address(access, record.payload, record.when.bases)?;
            Some(start.wrapping_add(bytes.from.into()))
        };
        let defines = definition.defines;
        let general = sets.general & defines.general;
        let mut any = decided || general | sets.single & u64::from(defines.single) != 0;
        sets.general &= !defines.general;
        sets.single &= !u64::from(defines.single);
        let mut taken = 0;
        if definition.write.count > 0
            && let Some(at) = at(definition.write)
        {
            taken = self.memory.take(at, definition.write.count.into());
        }
        let follow = self.question.follow;
        if taken != 0 {
            any = true;
            if follow != Follow::Thin {
                sets.next_general |= definition.write_address;
            }
        }
        if !any {
            return false;
        }
        let mut which = definition.read.all();
        match definition.way {
            Way::Made => {
                sets.next_general |= definition.uses.general;
                sets.next_single |= u64::from(definition.uses.single);
                if follow == Follow::Full {
                    sets.next_single |= u64::from(definition.conditions);
                }
            }
            Way::Moved(to, from) => sets.next_general |= general >> to << from,
            Way::Loaded(to) => which = general_bytes(general >> to).into(),
            Way::Stored(from) => sets.next_general |= u64::from(general_bits(taken as u32)) << from,
        }
        if definition.read.count > 0 {
            let at = at(definition.read);
            if let Some(at) = at {
                sets.reads[sets.count] = (at, which);
                sets.count += 1;
            }
            if follow != Follow::Thin
                || self.question.address_kind(definition.entry, at) == Kind::Value
            {
                sets.next_general |= definition.read_address;
            }
        }
        true
    }
}
