//! Instructions and their accesses: calls and returns, plain memory, atomic words.

use super::{Deed, Feed};
use crate::races::detector::Object;
use crate::races::sections::Inside;
use crate::semantics::{Form, Meaning};
use events::Event;
use events::decode::{Path, expand};
use events::shape::{KIND_BRANCH, KIND_CALL, KIND_RETURN};
use iced_x86::{Decoder as Code, DecoderOptions, Mnemonic, OpKind};

/// What is known of one instruction.
#[derive(Clone, Copy)]
pub(super) struct InstructionFacts {
    locked: bool,
    form: Form,
    excused: bool,
    atomic: bool,
}

impl Feed {
    fn compile(&mut self, path: &Path<'_, '_>) -> Vec<InstructionFacts> {
        let facts = &self.facts;
        let one = |instruction: &events::shape::Instruction| {
            let (pc, bytes) = (instruction.pc, instruction.code());
            let decoded = Code::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
            let memory = (0..decoded.op_count()).any(|it| decoded.op_kind(it) == OpKind::Memory);
            let exchanges = decoded.mnemonic() == Mnemonic::Xchg && memory;
            let is_in =
                |code: &[std::ops::Range<u64>]| code.iter().any(|range| range.contains(&pc));
            InstructionFacts {
                locked: decoded.has_lock_prefix() || exchanges,
                form: Meaning::of(&decoded, &mut self.factory).form,
                excused: is_in(&facts.excused_code),
                atomic: facts.atomics.instructions.contains(&pc) || is_in(&facts.runtime_code),
            }
        };
        path.shape.instructions.iter().map(one).collect()
    }

    pub(super) fn path(&mut self, path: &Path<'_, '_>) -> Option<()> {
        let number = path.number as usize;
        while self.shapes.len() <= number {
            self.shapes.push(Vec::new());
        }
        if self.shapes[number].len() != path.shape.instructions.len() {
            self.shapes[number] = self.compile(path);
        }
        let known = std::mem::take(&mut self.shapes[number]);
        let mut explicit = std::mem::take(&mut self.explicit);
        let (mut index, mut pc, bases) = (0, 0, self.bases);
        let mut seen_atomic = None;
        let done = expand(path, bases, &mut explicit, &mut |event| match event {
            Event::Instruction { pc: at, kind, taken } => {
                let known = known[index];
                (pc, index) = (at, index + 1);
                seen_atomic = None;
                self.tick += u64::from(known.form.is_tick(at, taken || kind != KIND_BRANCH));
                let crosses = matches!(kind, KIND_CALL | KIND_RETURN);
                self.thread().crossing = crosses.then_some((kind, at));
            }
            Event::Access { address, size, write } => {
                let how = index.checked_sub(1).map(|index| known[index]);
                self.event(pc, how, (address, size), write, &mut seen_atomic);
            }
            _ => {}
        });
        self.shapes[number] = known;
        self.explicit = explicit;
        done
    }

    /// An instruction has accessed memory.
    fn event(
        &mut self,
        pc: u64,
        how: Option<InstructionFacts>,
        (address, size): (u64, u32),
        write: bool,
        done: &mut Option<u64>,
    ) {
        let Some(how) = how else { return };
        match self.thread().crossing {
            Some((KIND_CALL, at)) if write => {
                let context = self.called(at);
                let thread = self.thread();
                thread.calls.call(address, context, |_| ());
                thread.crossing = None;
                return;
            }
            Some((KIND_RETURN, _)) if !write => {
                let thread = self.thread();
                thread.calls.returns(address, |_| ());
                thread.crossing = None;
                return;
            }
            _ => {}
        }
        if self.thread().is_hidden() || how.excused {
            return;
        }
        if self.facts.excused_memory.iter().any(|range| range.contains(&address)) {
            return;
        }
        let now = self.now;
        if how.locked {
            self.meetings.access(now, address, pc);
            if done.replace(address) != Some(address) {
                self.atomic_access(address, true, true);
                self.notes_atomic(address, size);
            }
            return;
        }
        if how.atomic || self.atomic.contains(&address) || self.is_known_atomic(address) {
            self.meetings.access(now, address, pc);
            self.atomic_access(address, !write, write);
            if !write {
                self.thread().waits.reads(address);
            }
            return;
        }
        let site = self.site(pc, Deed::Access);
        self.access(address, u64::from(size), write, site);
        self.in_section(address, size, write, site);
    }

    fn notes_atomic(&mut self, address: u64, size: u32) {
        if self.atomic.contains(&address) {
            return;
        }
        self.seen_atomic.insert((address, self.block_number(address)));
        // What was done to it as if it were plain memory was atomic all along.
        self.each_detector(|detector| detector.forget(address, u64::from(size)));
        self.atomic.insert(address);
    }

    /// How many allocations came before the block that an address is in.
    fn block_number(&self, address: u64) -> u32 {
        let before = self.blocks.range(..=address).next_back();
        before
            .filter(|(start, (size, _))| address - *start < *size)
            .map_or(0, |(_, (_, number))| *number)
    }

    fn is_known_atomic(&self, address: u64) -> bool {
        !self.facts.atomics.words.is_empty()
            && self.facts.atomics.words.contains(&(address, self.block_number(address)))
    }

    fn atomic_access(&mut self, address: u64, reads: bool, writes: bool) {
        if reads {
            self.acquire(Object::Atomic(address));
        }
        if writes {
            self.release(Object::Atomic(address));
        }
    }

    pub(super) fn access(&mut self, address: u64, size: u64, write: bool, site: u32) {
        if self.threads.len() < 2 {
            // Whatever comes before the first other thread is ordered with all of them.
            return;
        }
        let (now, tick) = (self.now, self.tick);
        let Self { detector, predictor, sets, sites, .. } = self;
        let apart = |one, other| sets.common(sites.locks(one), sites.locks(other)).is_none();
        detector.access(now, (address, size), write, (site, tick), apart);
        if let Some(predictor) = predictor {
            predictor.access(now, (address, size), write, (site, tick), apart);
        }
    }

    fn in_section(&mut self, address: u64, size: u32, write: bool, site: u32) {
        let (now, tick) = (self.now, self.tick);
        let thread = self.thread();
        let (locks, section) = (thread.locks, thread.section);
        if locks == 0 {
            return;
        }
        self.order_of_accesses += 1;
        let sequence = self.order_of_accesses;
        let inside = Inside { thread: now, site, time: tick, sequence, locks, section };
        if write {
            self.sections.write(address, size, inside, &self.sets);
        } else {
            self.thread().waits.reads(address);
            self.sections.read(address, size, inside);
        }
    }
}
