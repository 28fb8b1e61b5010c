//! Going back through a trace with the set of what is still wanted.

use super::frames::{Frames, Pending, Restore};
use super::graph::{Because, Edge, Frame, Kind, Node, Slice, What};
use super::question::{Follow, Question};
use super::strings::{Repeated, repeated};
use super::wanters::{Found, Wanters};
use crate::dependence::block::{Block, Exit, Static};
use crate::dependence::control::NO_CONTROL;
use crate::dependence::trace::{Item, When, address};
use crate::dependence::wanted::Wanted;
use crate::dependence::{Moment, Trace};
use crate::semantics::{Flow, Form, Meaning, Parts, Shuttle, Side, Span, StringOp, Uses};
use events::shape::Source;
use rustc_hash::{FxHashMap, FxHashSet};

/// Stands for a node that is not kept.
const NO_NODE: u32 = u32::MAX;
/// Records between two looks at whether anything is still wanted.
const LOOK_EVERY: u32 = 64;

/// What is wanted of one thread.
struct Thread {
    wanted: Parts,
    frames: Frames,
    /// A system call that brought something in and whose instruction comes next.
    syscall: Option<u32>,
    /// How often each instruction took part.
    counts: Vec<u64>,
}

impl Thread {
    fn new() -> Self {
        Self { wanted: Parts::NONE, frames: Frames::new(), syscall: None, counts: Vec::new() }
    }
}

/// A walk back through a trace.
pub struct Walk<'a> {
    trace: &'a Trace,
    question: &'a Question<'a>,
    bypass: bool,
    not_restores: &'a FxHashSet<u64>,
    number: u32,
    current: Thread,
    others: FxHashMap<u32, Thread>,
    memory: Wanted,
    /// Where registers were restored from whose saving has not been met.
    saved: Wanted,
    wanters: Wanters,
    slice: Slice,
    /// How often each exit has been passed.
    seen: Vec<u64>,
    /// In which exits, and how often in each, an instruction stands.
    standing: FxHashMap<u32, Vec<(u32, u64)>>,
    /// Restores that were none, by moment.
    refuted: Vec<u64>,
    /// Frames of foreign code whose call is looked for.
    open_frames: FxHashSet<u32>,
    foreign: FxHashMap<u32, bool>,
}

/// The record being looked at.
struct Record<'a> {
    when: When,
    id: u32,
    exit: &'a Exit,
    block: &'a Block,
    payload: &'a [u8],
    explicit: &'a [u8],
}

/// One instruction of it.
struct At<'r, 'a> {
    record: &'r Record<'a>,
    index: u16,
    id: u32,
    instruction: &'a Static,
}

impl<'a> At<'_, 'a> {
    fn meaning(&self) -> &'a Meaning {
        &self.instruction.meaning
    }

    fn moment(&self) -> Moment {
        Moment(self.record.when.moment.0 + u64::from(self.index))
    }

    /// The address of a memory operand.
    fn slot(&self, slot: u8) -> Option<u64> {
        let range = self.record.block.accesses_of(self.index);
        let access = self.record.block.accesses[range].get(usize::from(slot))?;
        address(access, self.record.payload, self.record.when.bases)
    }

    fn is_irregular(&self) -> bool {
        let range = self.record.block.accesses_of(self.index);
        let accesses = &self.record.block.accesses[range];
        accesses.first().is_some_and(|access| access.source == Source::Explicit)
    }
}

/// What an instruction that is in the slice wants in turn.
#[derive(Default)]
struct Next {
    parts: [Parts; 3],
    memory: Vec<(u64, u64, Kind)>,
}

impl Next {
    fn parts(&mut self, kind: Kind, parts: Parts) {
        self.parts[kind as usize] |= parts;
    }

    /// A range of any length.
    fn range(&mut self, address: u64, bytes: u64) {
        for from in (0..bytes).step_by(64) {
            let count = (bytes - from).min(64);
            let which = if count == 64 { u64::MAX } else { (1 << count) - 1 };
            self.memory.push((address.wrapping_add(from), which, Kind::Value));
        }
    }
}

impl<'a> Walk<'a> {
    /// Begins at the end of the trace.
    pub fn new(
        trace: &'a Trace,
        question: &'a Question<'a>,
        bypass: bool,
        not_restores: &'a FxHashSet<u64>,
    ) -> Self {
        let mut walk = Self {
            trace,
            question,
            bypass,
            not_restores,
            number: question.thread,
            current: Thread::new(),
            others: FxHashMap::default(),
            memory: Wanted::default(),
            saved: Wanted::default(),
            wanters: Wanters::default(),
            slice: Slice::default(),
            seen: vec![0; trace.blocks.exits.len()],
            standing: FxHashMap::default(),
            refuted: Vec::new(),
            open_frames: FxHashSet::default(),
            foreign: FxHashMap::default(),
        };
        walk.ask();
        walk
    }

    fn ask(&mut self) {
        let question = self.question;
        if question.nodes > 0 {
            let frame = self.frame();
            self.slice.nodes.push(Node {
                what: What::Question,
                instruction: None,
                thread: question.thread,
                moment: question.moment,
                instance: 0,
                frame,
                depth: 0,
            });
        }
        let root = if question.nodes > 0 { 0 } else { NO_NODE };
        let mut next = Next::default();
        next.parts(Kind::Value, question.wants.parts);
        for (address, bytes) in &question.wants.memory {
            next.range(*address, *bytes);
        }
        self.want(&next, root);
        if let (Some(pc), Some(control)) = (question.wants.control, question.control)
            && let Some(node) = control.node(pc)
        {
            let wanters = if root == NO_NODE { Vec::new() } else { vec![root] };
            self.current.frames.top().pending.push(Pending { node, wanters });
        }
    }

    /// Goes back until nothing is wanted any more.
    pub fn run(&mut self) {
        let mut back = self.trace.backward();
        let mut until_look = LOOK_EVERY;
        while let Some((when, item)) = back.previous() {
            if when.moment < self.question.from {
                break;
            }
            until_look -= 1;
            if until_look == 0 {
                until_look = LOOK_EVERY;
                if self.is_done() {
                    break;
                }
            }
            self.item(when, item);
        }
    }

    /// The answer, or the moments of restores that were none.
    pub fn finish(mut self) -> Result<Slice, Vec<u64>> {
        if !self.refuted.is_empty() {
            return Err(self.refuted);
        }
        self.slice.before = self.memory.take_all();
        let threads = self.others.iter().map(|(number, thread)| (*number, thread));
        for (number, thread) in threads.chain([(self.number, &self.current)]) {
            if !thread.wanted.is_empty() {
                self.slice.registers_before.insert(number, thread.wanted);
            }
            let counts = (0u32..).zip(&thread.counts).filter(|(_, count)| **count > 0);
            self.slice.counts.extend(counts.map(|(id, count)| ((number, id), *count)));
        }
        Ok(self.slice)
    }

    fn is_done(&self) -> bool {
        let idle = |thread: &Thread| {
            thread.wanted.is_empty() && thread.syscall.is_none() && !thread.frames.is_waiting()
        };
        self.memory.is_empty()
            && self.open_frames.is_empty()
            && idle(&self.current)
            && self.others.values().all(idle)
    }

    fn item(&mut self, when: When, item: Item<'a>) {
        if let Item::Path { exit, .. } = item
            && when.moment >= self.question.moment
        {
            self.seen[exit as usize] += 1;
            return;
        }
        if when.moment > self.question.moment {
            return;
        }
        self.switch(when.thread);
        match item {
            Item::Path { exit: id, payload, explicit } => {
                let exit = &self.trace.blocks.exits[id as usize];
                let block = &self.trace.blocks.blocks[exit.block as usize];
                self.path(&Record { when, id, exit, block, payload, explicit });
                self.seen[id as usize] += 1;
            }
            Item::Wrote(ranges) => self.wrote(when, ranges),
            Item::Syscall { number, arguments, answer } => {
                let rax = Parts::general(0, 0, 8);
                if self.current.wanted.meets(&rax) {
                    let mut found = Found::new();
                    self.take_parts(rax, &mut found);
                    self.system_call(when, &found);
                }
                if let Some(node) = self.current.syscall
                    && let Some(node) = self.slice.nodes.get_mut(node as usize)
                {
                    node.what = What::Syscall { number, arguments, answer };
                }
            }
            Item::Unwound(slots) => {
                for slot in slots.chunks_exact(8).rev() {
                    let slot = u64::from_le_bytes(slot.try_into().expect("eight bytes"));
                    self.current.frames.enter(slot, false);
                }
            }
            Item::Resumed => self.current.frames.enter(0, true),
            Item::Handler => {
                for frame in self.current.frames.leave_handler() {
                    if let Some(id) = frame.id {
                        self.open_frames.remove(&id);
                    }
                    self.refuted.extend(frame.restores.iter().map(|restore| restore.moment));
                }
            }
        }
    }

    fn switch(&mut self, thread: u32) {
        if thread == self.number {
            return;
        }
        let next = self.others.remove(&thread).unwrap_or_else(Thread::new);
        let last = std::mem::replace(&mut self.current, next);
        self.others.insert(std::mem::replace(&mut self.number, thread), last);
    }

    /// The number of the innermost frame, which is of interest from now on.
    fn frame(&mut self) -> u32 {
        let (top, frames) = (self.current.frames.top(), &mut self.slice.frames);
        *top.id.get_or_insert_with(|| {
            frames.push(Frame { caller: None, slot: top.slot });
            frames.len() as u32 - 1
        })
    }

    /// A system call wrote memory.
    fn wrote(&mut self, when: When, ranges: &[u8]) {
        let mut found = Found::new();
        let mut any = false;
        for range in ranges.chunks_exact(16) {
            let number = |from: usize| {
                u64::from_le_bytes(range[from..from + 8].try_into().expect("eight bytes"))
            };
            any |= self.take_range(number(0), number(8), &mut found).is_some();
        }
        if any {
            self.system_call(when, &found);
        }
    }

    /// A system call defined something that is wanted.
    fn system_call(&mut self, when: When, found: &Found) {
        let node = match self.current.syscall {
            Some(node) => node,
            None => {
                let nothing = What::Syscall { number: 0, arguments: [0; 6], answer: 0 };
                let node = self.node(nothing, None, when.moment, 0, found);
                self.current.syscall = Some(node);
                return;
            }
        };
        self.connect(node, found);
    }

    fn path(&mut self, record: &Record<'a>) {
        let room = self.question.moment.0 - record.when.moment.0;
        let whole = room >= record.exit.executed.into();
        let end = if whole { record.exit.begun() } else { room as u16 };
        self.slice.walked += u64::from(record.exit.executed);
        if self.concerns(record) {
            for index in (0..end).rev() {
                let id = record.block.instructions[usize::from(index)];
                let instruction = &self.trace.blocks.statics[id as usize];
                self.instruction(&At { record, index, id, instruction });
            }
            return;
        }
        let crossings = &record.block.crossings[..record.exit.crossings.into()];
        for crossing in crossings.iter().rev().filter(|crossing| crossing.index < end) {
            let index = crossing.index;
            let id = record.block.instructions[usize::from(index)];
            let instruction = &self.trace.blocks.statics[id as usize];
            let at = At { record, index, id, instruction };
            let mut found = Found::new();
            if self.cross(&at, &mut found) {
                self.include(&at, &found, Next::default(), true);
            }
        }
    }

    /// Whether the instructions of a record must be looked at one by one.
    fn concerns(&mut self, record: &Record<'a>) -> bool {
        let exit = record.exit;
        if self.current.wanted.meets(&exit.defines)
            || record.block.irregular
            || self.current.syscall.is_some()
            || !self.current.frames.top().pending.is_empty()
            || self.question.follow == Follow::Full && exit.crossings > 0
        {
            return true;
        }
        let (memory, saved) = (&mut self.memory, &mut self.saved);
        record.block.stores[..exit.stores.into()].iter().any(|store| {
            let access = &record.block.accesses[usize::from(*store)];
            address(access, record.payload, record.when.bases).is_some_and(|address| {
                let bytes = access.size.into();
                memory.has(address, bytes) || saved.has(address, bytes)
            })
        })
    }

    fn instruction(&mut self, at: &At<'_, 'a>) {
        let mut found = Found::new();
        let mut next = Next::default();
        let decided = self.control(at, &mut found);
        let mut hit = decided;
        let meaning = at.meaning();
        if meaning.form == Form::Syscall
            && let Some(node) = self.current.syscall.take()
        {
            self.complete(at, node);
        }
        if let Some(operation) = meaning.repeats {
            hit |= self.string(at, operation, &mut found, &mut next);
        } else if at.is_irregular() {
            hit |= self.irregular(at, &mut found, &mut next);
        } else if meaning.defines.meets(&self.current.wanted)
            || meaning.memory.iter().any(|operand| operand.write)
        {
            if self.restores(at) {
                return;
            }
            hit |= self.flows(at, &mut found, &mut next);
            self.saves(at);
        }
        if hit && !meaning.frame {
            self.include(at, &found, next, decided);
        }
    }

    /// Follows calls, returns and branches; whether someone waited for this one.
    fn control(&mut self, at: &At<'_, 'a>, found: &mut Found) -> bool {
        let form = at.meaning().form;
        match form {
            Form::Call(_) | Form::IndirectCall | Form::Return => self.cross(at, found),
            Form::Branch(_) | Form::IndirectJump | Form::Jump(_) => self.decides(at, found),
            _ => false,
        }
    }

    fn decides(&mut self, at: &At<'_, 'a>, found: &mut Found) -> bool {
        let Some(control) = self.question.control else { return false };
        let top = self.current.frames.top();
        if top.pending.is_empty() {
            return false;
        }
        let pc = at.instruction.pc;
        let (tail, mut hit) = (control.leaves(at.id), false);
        let because = if tail { Because::Call } else { Because::Branch };
        top.pending.retain(|pending| {
            let decided = tail || control.parents(pending.node).contains(&pc);
            if decided {
                hit = true;
                found.extend(pending.wanters.iter().map(|node| (*node, Kind::Control, because)));
            }
            !decided
        });
        hit
    }

    /// Follows a call or return; whether someone waited for the call.
    fn cross(&mut self, at: &At<'_, 'a>, found: &mut Found) -> bool {
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
        hit
    }

    /// Whether the instruction restores a register; its saving is looked for instead.
    fn restores(&mut self, at: &At<'_, 'a>) -> bool {
        let Some(Shuttle::Restore(register)) = at.meaning().shuttle else { return false };
        let parts = Parts::general(register, 0, 8) & self.current.wanted;
        if !self.bypass || parts.is_empty() || self.not_restores.contains(&at.moment().0) {
            return false;
        }
        let Some(address) = at.slot(0) else { return false };
        let mut wanters = Found::new();
        self.take_parts(parts, &mut wanters);
        self.saved.add(address, 8);
        let moment = at.moment().0;
        let restore = Restore { address, register, parts, moment, wanters };
        self.current.frames.top().restores.push(restore);
        true
    }

    /// Whether an instruction stores where a register was restored from: the saving of that
    /// register in the same frame, or the restore was none.
    fn saves(&mut self, at: &At<'_, 'a>) {
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
    fn refute(&mut self, address: u64, bytes: u64) {
        let threads = self.others.values().chain([&self.current]);
        for thread in threads {
            self.refuted.extend(thread.frames.overlapping(address, bytes));
        }
    }

    fn flows(&mut self, at: &At<'_, 'a>, found: &mut Found, next: &mut Next) -> bool {
        let mut hit = false;
        for flow in &at.meaning().flows {
            match flow {
                Flow::Copy { to, from } => {
                    let mask = self.take_span(at, *to, found);
                    if mask != 0 {
                        hit = true;
                        self.use_span(at, *from, mask, next);
                        self.use_address(at, *to, next);
                    }
                }
                Flow::Make { parts, write, uses, .. } => {
                    let mut any = self.current.wanted.meets(parts);
                    if any {
                        self.take_parts(*parts, found);
                    }
                    if let Some(write) = write
                        && self.take_span(at, *write, found) != 0
                    {
                        any = true;
                        self.use_address(at, *write, next);
                    }
                    if any {
                        hit = true;
                        self.use_all(at, uses, next);
                    }
                }
            }
        }
        hit
    }

    /// An instruction whose accesses stand in a record of their own: all from all.
    fn irregular(&mut self, at: &At<'_, 'a>, found: &mut Found, next: &mut Next) -> bool {
        let meaning = at.meaning();
        let mut hit = self.current.wanted.meets(&meaning.defines);
        if hit {
            self.take_parts(meaning.defines, found);
        }
        let accesses = at.record.explicit.chunks_exact(13).map(|access| {
            let address = u64::from_le_bytes(access[1..9].try_into().expect("eight bytes"));
            let bytes = u32::from_le_bytes(access[9..13].try_into().expect("four bytes"));
            (access[0] != 0, address, u64::from(bytes))
        });
        for (_, address, bytes) in accesses.clone().filter(|access| access.0) {
            hit |= self.take_range(address, bytes, found).is_some();
        }
        if hit {
            for flow in &meaning.flows {
                match flow {
                    Flow::Copy { from, .. } => next.parts(Kind::Value, from.parts()),
                    Flow::Make { uses, .. } => {
                        next.parts(Kind::Value, uses.values);
                        next.parts(Kind::Control, uses.conditions);
                    }
                }
            }
            for (_, address, bytes) in accesses.filter(|access| !access.0) {
                next.range(address, bytes);
            }
            next.parts(Kind::Address, meaning.addresses());
        }
        hit
    }

    fn string(
        &mut self,
        at: &At<'_, 'a>,
        operation: StringOp,
        found: &mut Found,
        next: &mut Next,
    ) -> bool {
        let range = at.record.block.accesses_of(at.index);
        let accesses = &at.record.block.accesses[range];
        let Some(did) = repeated(accesses, at.record.payload, at.record.when.bases) else {
            return false;
        };
        if did.bytes == 0 {
            // Not even the counter changes.
            return false;
        }
        let whole = |number| Parts::general(number, 0, 8);
        let (rax, rcx, rsi, rdi) = (whole(0), whole(1), whole(6), whole(7));
        let mut hit = false;
        if matches!(operation, StringOp::Moves | StringOp::Stores)
            && let Some(taken) = self.take_range(did.target, did.bytes, found)
        {
            hit = true;
            next.parts(Kind::Address, rdi);
            next.parts(Kind::Control, rcx);
            if operation == StringOp::Moves {
                next.parts(Kind::Address, rsi);
                moved(&did, &taken, next);
            } else {
                next.parts(Kind::Value, Parts::general(0, 0, did.size as u8));
            }
        }
        let completed = at.index < at.record.exit.executed;
        let counts = matches!(operation, StringOp::Moves | StringOp::Stores | StringOp::Loads);
        let defines = at.meaning().defines & self.current.wanted;
        if defines.is_empty() {
            return hit;
        }
        self.take_parts(defines, found);
        if counts {
            if defines.meets(&rsi) {
                next.parts(Kind::Value, rsi | rcx);
            }
            if defines.meets(&rdi) {
                next.parts(Kind::Value, rdi | rcx);
            }
            if defines.meets(&rcx) && !completed {
                next.parts(Kind::Value, rcx);
            }
            if operation == StringOp::Loads && defines.meets(&rax) {
                let last = if did.down { 0 } else { did.bytes - did.size };
                next.range(did.source + last, did.size);
                next.parts(Kind::Address, rsi);
                next.parts(Kind::Control, rcx);
            }
        } else {
            next.parts(Kind::Value, rcx);
            if operation.reads_source() {
                next.range(did.source, did.bytes);
                next.parts(Kind::Value, rsi & defines);
                next.parts(Kind::Address, rsi);
            } else {
                next.parts(Kind::Value, Parts::general(0, 0, did.size as u8));
            }
            if operation.reads_target() {
                next.range(did.target, did.bytes);
                next.parts(Kind::Value, rdi & defines);
                next.parts(Kind::Address, rdi);
            }
        }
        true
    }

    /// Takes what is wanted of a span out of the set; which of its bytes.
    fn take_span(&mut self, at: &At<'_, 'a>, span: Span, found: &mut Found) -> u64 {
        match span.side {
            Side::Memory(slot) => {
                let Some(address) = at.slot(slot) else { return 0 };
                let address = address.wrapping_add(span.from.into());
                let bytes = u64::from(span.bytes);
                if bytes > 64 {
                    return u64::from(self.take_range(address, bytes, found).is_some());
                }
                let taken = self.memory.take(address, bytes);
                if taken != 0 && self.keeps_edges() {
                    self.wanters.take_bytes(address, taken, found);
                }
                taken
            }
            _ => {
                let mask = span.bytes_in(&self.current.wanted);
                if mask != 0 {
                    self.take_parts(span.some_parts(mask), found);
                }
                mask.into()
            }
        }
    }

    fn take_parts(&mut self, parts: Parts, found: &mut Found) {
        let taken = self.current.wanted & parts;
        self.current.wanted = self.current.wanted.without(&parts);
        if self.keeps_edges() {
            self.wanters.take_parts(self.number, taken, found);
        }
    }

    /// Takes a range of memory out of the set: what was wanted of it, if anything was. Registers
    /// restored from there were not saved there.
    fn take_range(
        &mut self,
        address: u64,
        bytes: u64,
        found: &mut Found,
    ) -> Option<Vec<(u64, u64)>> {
        if !self.saved.is_empty() {
            self.refute(address, bytes);
        }
        let taken = self.memory.take_range(address, bytes);
        if self.keeps_edges() {
            for (from, count) in &taken {
                for at in 0..*count {
                    self.wanters.take_bytes(from + at, 1, found);
                }
            }
        }
        (!taken.is_empty()).then_some(taken)
    }

    fn keeps_edges(&self) -> bool {
        !self.slice.cut && self.question.nodes > 0
    }

    fn use_span(&self, at: &At<'_, 'a>, span: Span, mask: u64, next: &mut Next) {
        match span.side {
            Side::Memory(slot) => {
                if let Some(address) = at.slot(slot) {
                    next.memory.push((address.wrapping_add(span.from.into()), mask, Kind::Value));
                }
                self.use_address(at, span, next);
            }
            _ => next.parts(Kind::Value, span.some_parts(mask as u32)),
        }
    }

    fn use_address(&self, at: &At<'_, 'a>, span: Span, next: &mut Next) {
        if let Side::Memory(slot) = span.side {
            next.parts(Kind::Address, at.meaning().memory[usize::from(slot)].address);
        }
    }

    fn use_all(&self, at: &At<'_, 'a>, uses: &Uses, next: &mut Next) {
        next.parts(Kind::Value, uses.values);
        next.parts(Kind::Control, uses.conditions);
        for read in &uses.reads {
            if let Side::Memory(slot) = read.side
                && let Some(address) = at.slot(slot)
            {
                next.range(address.wrapping_add(read.from.into()), read.bytes.into());
                self.use_address(at, *read, next);
            }
        }
    }

    /// Takes an instruction into the slice; `decided` if someone waited for where it leads.
    fn include(&mut self, at: &At<'_, 'a>, found: &Found, mut next: Next, decided: bool) {
        let threads = &self.question.threads;
        if !threads.is_empty() && !threads.contains(&self.number) {
            return;
        }
        self.count(at.id);
        let instance = if self.keeps_edges() { self.instance(at) } else { 0 };
        let node = self.node(What::Executed, Some(at.id), at.moment(), instance, found);
        if let Some(kept) = self.slice.nodes.get(node as usize)
            && kept.depth >= self.question.depth
        {
            return;
        }
        if decided && let Some(uses) = &at.meaning().decides {
            self.use_all(at, uses, &mut next);
        }
        self.want(&next, node);
        self.wait(at, node);
    }

    fn count(&mut self, id: u32) {
        let counts = &mut self.current.counts;
        if counts.len() <= id as usize {
            counts.resize(self.trace.blocks.statics.len(), 0);
        }
        counts[id as usize] += 1;
    }

    /// Waits for the branch that decided about an instruction.
    fn wait(&mut self, at: &At<'_, 'a>, node: u32) {
        if node != NO_NODE && self.is_foreign(at.id) {
            let frame = self.frame();
            self.open_frames.insert(frame);
        }
        let Some(control) = self.question.control.filter(|_| self.question.follow == Follow::Full)
        else {
            return;
        };
        let decided = control.node_of(at.id);
        if decided == NO_CONTROL {
            return;
        }
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

    /// The instruction of a system call that brought something in.
    fn complete(&mut self, at: &At<'_, 'a>, node: u32) {
        let instance = self.instance(at);
        self.count(at.id);
        let frame = self.frame();
        if let Some(kept) = self.slice.nodes.get_mut(node as usize) {
            kept.instruction = Some(at.id);
            kept.moment = at.moment();
            kept.instance = instance;
            kept.frame = frame;
        }
        self.wait(at, node);
    }

    fn node(
        &mut self,
        what: What,
        instruction: Option<u32>,
        moment: Moment,
        instance: u64,
        found: &Found,
    ) -> u32 {
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
        self.slice.nodes.push(Node { what, instruction, thread, moment, instance, frame, depth });
        let node = self.slice.nodes.len() as u32 - 1;
        self.connect(node, found);
        node
    }

    fn connect(&mut self, on: u32, found: &Found) {
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
    fn want(&mut self, next: &Next, node: u32) {
        let keeps = node != NO_NODE && self.keeps_edges();
        for (kind, parts) in [Kind::Value, Kind::Address, Kind::Control].into_iter().zip(next.parts)
        {
            let parts = parts.without(&self.question.prune_parts);
            if parts.is_empty() || !self.question.follow.follows(kind) {
                continue;
            }
            self.current.wanted |= parts;
            if keeps {
                self.wanters.want_parts(self.number, parts, node, kind);
            }
        }
        for (address, which, kind) in &next.memory {
            let which = self.unpruned(*address, *which);
            self.memory.add_some(*address, which);
            if keeps {
                self.wanters.want_bytes(*address, which, node, *kind);
            }
        }
    }

    fn unpruned(&self, address: u64, which: u64) -> u64 {
        let inside = |byte: u64| {
            self.question.prune_memory.iter().any(|(from, count)| byte.wrapping_sub(*from) < *count)
        };
        if self.question.prune_memory.is_empty() {
            return which;
        }
        let pruned = (0..64).filter(|bit| inside(address.wrapping_add(*bit)));
        pruned.fold(which, |which, bit| which & !(1 << bit))
    }

    fn is_foreign(&mut self, id: u32) -> bool {
        let Some(foreign) = self.question.foreign else { return false };
        let pc = self.trace.blocks.statics[id as usize].pc;
        *self.foreign.entry(id).or_insert_with(|| foreign(pc))
    }

    /// Which execution of its instruction this is, in the window.
    fn instance(&mut self, at: &At<'_, 'a>) -> u64 {
        let blocks = &self.trace.blocks;
        let standing = self.standing.entry(at.id).or_insert_with(|| {
            let mut exits = Vec::new();
            for (number, exit) in (0u32..).zip(&blocks.exits) {
                let block = &blocks.blocks[exit.block as usize];
                let ran = &block.instructions[..exit.executed.into()];
                let count = ran.iter().filter(|id| **id == at.id).count() as u64;
                if count > 0 {
                    exits.push((number, count));
                }
            }
            exits
        });
        let left = |(exit, count): &(u32, u64)| {
            (self.trace.taken[*exit as usize] - self.seen[*exit as usize]) * count
        };
        let all: u64 = standing.iter().map(left).sum();
        let record = at.record;
        let ran = &record.block.instructions[..record.exit.executed.into()];
        let later = ran.iter().skip(usize::from(at.index) + 1).filter(|id| **id == at.id).count();
        debug_assert!(record.id < self.seen.len() as u32);
        all.saturating_sub(later as u64)
    }
}

/// The bytes that a repeated move took from its source. Where it ran into what it had written, the
/// bytes come from its beginning.
fn moved(did: &Repeated, taken: &[(u64, u64)], next: &mut Next) {
    let apart = did.target.wrapping_sub(did.source);
    let wraps = !did.down && apart >= did.size && apart < did.bytes;
    for (from, count) in taken {
        if wraps {
            for byte in *from..from + count {
                next.range(did.source + (byte - did.target) % apart, 1);
            }
        } else {
            next.range(did.source.wrapping_add(from - did.target), *count);
        }
    }
}
