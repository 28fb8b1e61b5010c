//! The way of most instructions where no edges are kept, by their definitions in brief.

use super::Walk;
use crate::dependence::block::{Look, Quick};
use crate::dependence::brief::{Brief, Bytes, MOST_READS, Way};
use crate::dependence::trace::address;
use crate::semantics::{general_bits, general_bytes};
use crate::slice::at::Record;
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
    pub(super) fn brief(&mut self, record: &Record<'_>, index: u16, quick: &Quick) -> bool {
        let id = record.block.instructions[usize::from(index)];
        match quick.look {
            Look::Defines if !quick.defines.meets(&self.current.wanted) => return true,
            Look::Stores if self.touches_saved(record, index, quick.look) => return false,
            Look::Decides if !self.is_decided(id) => return true,
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
        let (trace, decided) = (self.trace, quick.look == Look::Decides);
        let mut hit = decided;
        for brief in trace.blocks.briefs(quick) {
            hit |= self.define(record, index, (brief, decided), &mut sets);
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
        self.lean_wait(id);
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
        (brief, decided): (&Brief, bool),
        sets: &mut Sets,
    ) -> bool {
        let at = |bytes: Bytes| {
            let accesses = &record.block.accesses[record.block.accesses_of(index)];
            let access = accesses.get(usize::from(bytes.slot))?;
            let start = address(access, record.payload, record.when.bases)?;
            Some(start.wrapping_add(bytes.from.into()))
        };
        let defines = brief.defines;
        let general = sets.general & defines.general;
        let mut any = decided || general | sets.single & u64::from(defines.single) != 0;
        sets.general &= !defines.general;
        sets.single &= !u64::from(defines.single);
        let mut taken = 0;
        if brief.write.count > 0
            && let Some(at) = at(brief.write)
        {
            taken = self.memory.take(at, brief.write.count.into());
        }
        let follow = self.question.follow;
        if taken != 0 {
            any = true;
            if follow != Follow::Thin {
                sets.next_general |= brief.write_address;
            }
        }
        if !any {
            return false;
        }
        let mut which = brief.read.all();
        match brief.way {
            Way::Made => {
                sets.next_general |= brief.uses.general;
                sets.next_single |= u64::from(brief.uses.single);
                if follow == Follow::Full {
                    sets.next_single |= u64::from(brief.conditions);
                }
            }
            Way::Moved(to, from) => sets.next_general |= general >> to << from,
            Way::Loaded(to) => which = general_bytes(general >> to).into(),
            Way::Stored(from) => sets.next_general |= u64::from(general_bits(taken as u32)) << from,
        }
        if brief.read.count > 0 {
            if let Some(at) = at(brief.read) {
                sets.reads[sets.count] = (at, which);
                sets.count += 1;
            }
            if follow != Follow::Thin {
                sets.next_general |= brief.read_address;
            }
        }
        true
    }
}
