//! Instructions and their accesses: calls and returns, plain memory, atomic words.
//!
//! What can be known of a superblock is worked out once ([`Code`]). Of what it does, calls and returns are always
//! followed, and accesses are looked at if they touch memory that threads share. In the quick pass before, nothing
//! is done but to find out which memory that is ([`Feed::survey`]).

use super::facts::LockWord;
use super::reach::Reach;
use super::{Deed, Feed};
use crate::races::detector::Object;
use crate::races::locks::LockSet;
use crate::races::sections::Inside;
use crate::races::shared::LINE;
use crate::semantics::{Form, Meaning};
use events::decode::{Path, address, repeated};
use events::shape::{self, KIND_BRANCH, KIND_CALL, KIND_RETURN, Source};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};

/// What is known of one instruction.
#[derive(Clone, Copy)]
pub(super) struct InstructionFacts {
    pub(super) pc: u64,
    pub(super) kind: u8,
    pub(super) locked: bool,
    form: Form,
    excused: bool,
    atomic: bool,
    /// What it does to a lock that is made of an atomic word.
    lock_word: Option<LockWord>,
    /// The site that an access was at the last time, and the calls and locks then.
    site: Option<(u32, LockSet, u32)>,
    /// The context that a call led to the last time, and the one that it was in.
    called: Option<(u32, u32)>,
}

/// What is known of a superblock.
#[derive(Default)]
pub(super) struct Code {
    pub(super) instructions: Vec<InstructionFacts>,
    accesses: Vec<shape::Access>,
    /// Ticks before each instruction and behind the last one, if no branch is taken.
    ticks: Vec<u16>,
    has_locked: bool,
    reach: Reach,
}

impl Code {
    /// Ticks that pass while so many instructions execute.
    fn passed(&self, path: &Path<'_, '_>) -> u64 {
        let executed = usize::from(path.executed);
        let last = executed.checked_sub(1).and_then(|last| self.instructions.get(last));
        let taken = last.is_some_and(|last| {
            path.taken && last.kind == KIND_BRANCH && last.form.is_tick(last.pc, true)
        });
        self.ticks.get(executed).map_or(0, |ticks| u64::from(*ticks)) + u64::from(taken)
    }
}

/// Whether an access is the push of a call or the pop of a return.
pub(super) fn crosses(kind: u8, access: &shape::Access) -> bool {
    kind == KIND_RETURN || kind == KIND_CALL && access.write
}

impl Feed {
    fn compile(&mut self, path: &Path<'_, '_>) -> Code {
        let facts = &self.facts;
        let one = |instruction: &shape::Instruction| {
            let (pc, bytes) = (instruction.pc, instruction.code());
            let decoded = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
            let memory = (0..decoded.op_count()).any(|it| decoded.op_kind(it) == OpKind::Memory);
            let exchanges = decoded.mnemonic() == Mnemonic::Xchg && memory;
            let is_in =
                |code: &[std::ops::Range<u64>]| code.iter().any(|range| range.contains(&pc));
            InstructionFacts {
                pc,
                kind: instruction.kind,
                locked: decoded.has_lock_prefix() || exchanges,
                form: Meaning::of(&decoded, &mut self.factory).form,
                excused: is_in(&facts.excused_code),
                atomic: facts.atomics.instructions.contains(&pc) || is_in(&facts.runtime_code),
                lock_word: facts.lock_words.get(&pc).copied(),
                site: None,
                called: None,
            }
        };
        let instructions: Vec<InstructionFacts> = path.shape.instructions.iter().map(one).collect();
        let mut ticks = vec![0];
        for one in &instructions {
            let passes = one.form.is_tick(one.pc, one.kind != KIND_BRANCH);
            ticks.push(ticks[ticks.len() - 1] + u16::from(passes));
        }
        let has_locked = instructions.iter().any(|one| one.locked);
        let accesses = path.shape.accesses.clone();
        let reach = Reach::of(&instructions, &accesses, facts.shared.as_ref());
        Code { instructions, accesses, ticks, has_locked, reach }
    }

    pub(super) fn path(&mut self, path: &Path<'_, '_>) -> Option<()> {
        let number = path.number as usize;
        if self.codes.len() <= number {
            self.codes.resize_with(number + 1, Code::default);
        }
        if self.codes[number].instructions.len() != path.shape.instructions.len() {
            self.codes[number] = self.compile(path);
        }
        let mut code = std::mem::take(&mut self.codes[number]);
        let done = if self.owners.is_some() {
            self.survey(path, &mut code)
        } else {
            self.look(path, &mut code)
        };
        self.codes[number] = code;
        done
    }

    /// The quick pass: who accesses what, and which words are atomic.
    fn survey(&mut self, path: &Path<'_, '_>, code: &mut Code) -> Option<()> {
        let (now, bases) = (self.now, self.bases);
        self.tick += code.passed(path);
        let is_alone = self.threads.len() < 2;
        if self.is_hidden() || is_alone && !code.has_locked {
            self.explicit.clear();
            return Some(());
        }
        if code.reach.tells_all {
            code.reach.survey(self.owners.as_mut()?, now, path.payload, bases);
            return Some(());
        }
        let begun = path.begun();
        let mut accesses = code.accesses.as_slice();
        while let Some(access) = accesses.first().filter(|access| access.index < begun) {
            let owners = self.owners.as_mut()?;
            match access.source {
                Source::Constant(_) | Source::Field { .. } => {
                    let address = address(access, path.payload, bases)?;
                    owners.access(now, address, u64::from(access.size), access.write);
                    let how = code.instructions[usize::from(access.index)];
                    if how.locked && !how.excused && !self.is_excused(address) {
                        self.notes_atomic(address, access.size.into());
                    }
                }
                Source::Explicit => {
                    for (write, address, size) in self.explicit.drain(..) {
                        owners.access(now, address, size.into(), write);
                    }
                }
                Source::Repeat { .. } => {
                    let group = group(accesses);
                    repeated(group, path.payload, bases, |write, address, bytes| {
                        owners.access(now, address, bytes, write);
                    })?;
                    accesses = &accesses[group.len()..];
                    continue;
                }
            }
            accesses = &accesses[1..];
        }
        Some(())
    }

    /// The pass that counts.
    fn look(&mut self, path: &Path<'_, '_>, code: &mut Code) -> Option<()> {
        let (begun, bases, start) = (path.begun(), self.bases, self.tick);
        if self.passes_by(path, code) {
            self.follow(path, code)?;
            self.tick = start + code.passed(path);
            return Some(());
        }
        let mut at = 0;
        let mut atomic = None;
        while let Some(access) = code.accesses.get(at).filter(|access| access.index < begun) {
            let how = &mut code.instructions[usize::from(access.index)];
            let tick = |code: &[u16]| start + u64::from(code[usize::from(access.index) + 1]);
            match access.source {
                Source::Constant(_) | Source::Field { .. } => {
                    let address = address(access, path.payload, bases)?;
                    if crosses(how.kind, access)
                        || self.is_of_interest(address, access.size.into(), access.write)
                    {
                        self.tick = tick(&code.ticks);
                        self.event(how, (address, access.size.into()), access.write, &mut atomic);
                    }
                }
                Source::Explicit => {
                    self.tick = tick(&code.ticks);
                    let mut explicit = std::mem::take(&mut self.explicit);
                    for (write, address, size) in explicit.drain(..) {
                        self.event(how, (address, size.into()), write, &mut atomic);
                    }
                    self.explicit = explicit;
                }
                Source::Repeat { .. } => {
                    self.tick = tick(&code.ticks);
                    let group = group(&code.accesses[at..]);
                    repeated(group, path.payload, bases, |write, address, bytes| {
                        self.event(how, (address, bytes), write, &mut atomic);
                    })?;
                    at += group.len();
                    continue;
                }
            }
            at += 1;
        }
        self.tick = start + code.passed(path);
        Some(())
    }

    /// Whether nothing that a path does matters but its calls and returns.
    #[inline]
    fn passes_by(&mut self, path: &Path<'_, '_>, code: &Code) -> bool {
        let is_alone = self.threads.len() < 2;
        let thread = self.thread();
        let (is_hidden, locks) = (thread.is_hidden, thread.locks);
        let Some(shared) = &self.facts.shared else { return false };
        code.reach.tells_all
            && (is_hidden
                || locks == 0
                    && (is_alone || !code.reach.touches(shared, path.payload, self.bases)))
    }

    /// Follows calls and returns alone.
    fn follow(&mut self, path: &Path<'_, '_>, code: &mut Code) -> Option<()> {
        let begun = path.begun();
        for at in 0..code.reach.crossings.len() {
            let access = code.accesses[usize::from(code.reach.crossings[at])];
            if access.index >= begun {
                break;
            }
            let address = address(&access, path.payload, self.bases)?;
            self.cross(&mut code.instructions[usize::from(access.index)], address);
        }
        Some(())
    }

    /// A call has pushed, or a return popped, what is at an address.
    fn cross(&mut self, how: &mut InstructionFacts, address: u64) {
        if how.kind == KIND_RETURN {
            self.thread().calls.returns(address, |_| ());
            return;
        }
        let outer = self.context();
        let context = match how.called {
            Some((known, context)) if known == outer => context,
            _ => self.sites.called(outer, how.pc),
        };
        how.called = Some((outer, context));
        self.thread().calls.call(address, context, |_| ());
    }

    /// Whether an access may matter: others have to do with the memory, or it is looked at before a wait.
    #[inline]
    fn is_of_interest(&mut self, address: u64, size: u64, write: bool) -> bool {
        if self.facts.shared.as_ref().is_none_or(|shared| shared.touches(address, size)) {
            return true;
        }
        let thread = &self.threads[usize::from(self.now)];
        if thread.locks != 0 && !write && !thread.is_hidden && !self.is_excused(address) {
            self.thread().waits.reads(address);
        }
        false
    }

    fn is_hidden(&mut self) -> bool {
        self.thread().is_hidden
    }

    fn is_excused(&self, address: u64) -> bool {
        self.facts.excused_memory.iter().any(|range| range.contains(&address))
    }

    /// An instruction has accessed memory.
    fn event(
        &mut self,
        how: &mut InstructionFacts,
        (address, size): (u64, u64),
        write: bool,
        done: &mut Option<(u64, u64)>,
    ) {
        if how.kind == KIND_RETURN || how.kind == KIND_CALL && write {
            return self.cross(how, address);
        }
        if self.is_hidden() || how.excused || self.is_excused(address) {
            return;
        }
        let (now, pc) = (self.now, how.pc);
        if let Some(deed) = how.lock_word.filter(|_| how.locked) {
            if done.replace((pc, address)) != Some((pc, address)) {
                self.meetings.access(now, address, pc);
                self.notes_atomic(address, size);
                self.changes_lock_word(deed, address, pc);
            }
            return;
        }
        if how.locked {
            self.meetings.access(now, address, pc);
            if done.replace((pc, address)) != Some((pc, address)) {
                self.atomic_access(address, true, true);
                self.notes_atomic(address, size);
            }
            return;
        }
        if how.atomic || self.atomic.contains(address) || self.is_known_atomic(address) {
            self.meetings.access(now, address, pc);
            self.atomic_access(address, !write, write);
            if !write {
                self.thread().waits.reads(address);
            }
            return;
        }
        let site = self.site_of(how);
        self.access(address, size, write, site);
        self.in_section(address, size, write, (site, pc));
    }

    /// The site of an access: most are where they were the last time.
    fn site_of(&mut self, how: &mut InstructionFacts) -> u32 {
        let (context, locks) = (self.context(), self.thread().locks);
        if let Some((known, held, site)) = how.site
            && (known, held) == (context, locks)
        {
            return site;
        }
        let site = self.site(how.pc, Deed::Access);
        how.site = Some((context, locks, site));
        site
    }

    fn notes_atomic(&mut self, address: u64, size: u64) {
        if self.atomic.contains(address) {
            return;
        }
        self.seen_atomic.insert((address, self.block_number(address)));
        // What was done to it as if it were plain memory was atomic all along.
        self.each_detector(|detector| detector.forget(address, size));
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

    pub(super) fn atomic_access(&mut self, address: u64, reads: bool, writes: bool) {
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
        if let Some(owners) = &mut self.owners {
            return owners.access(now, address, size, write);
        }
        let Self { detector, predictor, sets, sites, facts, .. } = self;
        let apart = |one, other| sets.common(sites.locks(one), sites.locks(other)).is_none();
        let mut one = |part| {
            detector.access(now, part, write, (site, tick), apart);
            if let Some(predictor) = predictor {
                predictor.access(now, part, write, (site, tick), apart);
            }
        };
        match &facts.shared {
            // Of a block that is freed, or copied, only some may be shared.
            Some(shared) if size > LINE => shared.parts(address, size).for_each(one),
            _ => one((address, size)),
        }
    }

    fn in_section(&mut self, address: u64, size: u64, write: bool, (site, pc): (u32, u64)) {
        let (now, tick) = (self.now, self.tick);
        let context = self.context();
        let thread = self.thread();
        let (locks, section) = (thread.locks, thread.section);
        if locks == 0 {
            return;
        }
        self.order_of_accesses += 1;
        let sequence = self.order_of_accesses;
        let inside = Inside { thread: now, site, time: tick, sequence, locks, section };
        self.pairs.access(address, write, inside, (context, pc));
        if write {
            self.sections.write(address, size, inside, &self.sets);
        } else {
            self.thread().waits.reads(address);
            self.sections.read(address, size, inside);
        }
    }
}

/// The accesses of the first one's instruction.
fn group(accesses: &[shape::Access]) -> &[shape::Access] {
    let own = accesses.iter().take_while(|access| access.index == accesses[0].index).count();
    &accesses[..own]
}
