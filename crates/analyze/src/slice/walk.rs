//! Going back through a trace with the set of what is still wanted.
//!
//! Parts: `control` (calls, decisions, saved registers), `flows` (what an instruction defines and
//! uses), `sets_only` (the same without edges), `fast_path` (the same for most instructions), `nodes` (the answer as it grows).

mod control;
mod fast_path;
mod flows;
mod nodes;
mod sets_only;

use super::at::{At, Record};
use super::frames::{Frames, Pending};
use super::graph::{Kind, Node, Slice, What};
use super::instances::Instances;
use super::question::{Follow, Question};
use super::wanters::{Reasons, Wanters};
use crate::dependence::Trace;
use crate::dependence::block::Relevance;
use crate::dependence::calls;
use crate::dependence::trace::{Item, When, address, ranges, slots};
use crate::dependence::wanted::Wanted;
use crate::semantics::{Form, Parts};
use base::StepCount;
use nodes::Ran;
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
    syscall: Option<Input>,
    /// Who waits for the jump that landed here, if it decided about anything. It comes next.
    landed: Option<Vec<u32>>,
    /// How often each instruction took part.
    counts: Vec<u64>,
}

impl Thread {
    fn new() -> Self {
        let (wanted, frames, counts) = (Parts::NONE, Frames::new(), Vec::new());
        Self { wanted, frames, syscall: None, landed: None, counts }
    }
}

/// A system call that brought something in.
struct Input {
    what: What,
    moment: StepCount,
    /// Who wanted it.
    found: Reasons,
    /// Whether its answer was wanted; else only what it wrote to memory.
    answer: bool,
    /// Memory that it read: address, bytes.
    reads: Vec<(u64, u64)>,
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
    instances: Instances,
    /// Restores that were none, by moment.
    refuted: Vec<u64>,
    /// Frames of foreign code whose call is looked for.
    open_frames: FxHashSet<u32>,
    foreign: FxHashMap<u32, bool>,
    bookkeepers: FxHashMap<u32, bool>,
    /// Room for what is found out about one instruction.
    scratch: Option<Box<(Reasons, Next)>>,
}

/// What an instruction that is in the slice wants in turn.
#[derive(Default)]
struct Next {
    parts: [Parts; 3],
    memory: Vec<(u64, u64, Kind)>,
}

impl Next {
    fn clear(&mut self) {
        self.parts = Default::default();
        self.memory.clear();
    }

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
            instances: Instances::new(&trace.blocks),
            refuted: Vec::new(),
            open_frames: FxHashSet::default(),
            foreign: FxHashMap::default(),
            bookkeepers: FxHashMap::default(),
            scratch: None,
        };
        walk.ask();
        walk
    }

    fn ask(&mut self) {
        let question = self.question;
        if question.nodes > 0 {
            let frame = self.frame();
            self.slice.nodes.push(Node::question(question, frame));
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
            if self.is_before_start(when, &item) {
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
        self.slice.is_open = !self.is_done();
    }

    /// Whether all of an item comes before what may be looked at.
    fn is_before_start(&self, when: When, item: &Item<'_>) -> bool {
        let executed = match item {
            Item::Path { exit, .. } => self.trace.blocks.extents[*exit as usize].executed,
            _ => 0,
        };
        when.moment < self.question.from
            && when.moment.0 + u64::from(executed) <= self.question.from.0
    }

    /// The answer, or the moments of restores that were none.
    pub fn finish(mut self) -> Result<Slice, Vec<u64>> {
        if !self.refuted.is_empty() {
            return Err(self.refuted);
        }
        self.leave_inputs();
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

    /// System calls that were made before the window brought something in.
    fn leave_inputs(&mut self) {
        let others: Vec<u32> = self.others.keys().copied().collect();
        for thread in others.into_iter().chain([self.number]) {
            self.switch(thread);
            if let Some(input) = self.current.syscall.take() {
                let ran = Ran { instruction: None, moment: input.moment, tick: None };
                self.node(input.what, ran, 0, &input.found);
            }
        }
    }

    fn is_done(&self) -> bool {
        let idle = |thread: &Thread| {
            thread.wanted.is_empty()
                && thread.syscall.is_none()
                && thread.landed.is_none()
                && !thread.frames.is_waiting()
        };
        self.memory.is_empty()
            && self.open_frames.is_empty()
            && idle(&self.current)
            && self.others.values().all(idle)
    }

    fn item(&mut self, when: When, item: Item<'_>) {
        if let Item::Path { exit, .. } = item
            && when.moment >= self.question.moment
        {
            self.instances.pass(exit);
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
                self.path(&Record { when, exit, block, payload, explicit });
                self.instances.pass(id);
            }
            Item::Wrote(ranges) => self.wrote(when, ranges),
            Item::Syscall { number, arguments, answer } => {
                let rax = Parts::general(0, 0, 8);
                if self.current.wanted.meets(&rax) {
                    let mut found = Reasons::new();
                    self.take_parts(rax, &mut found);
                    self.system_call(when, found).answer = true;
                }
                if let Some(input) = &mut self.current.syscall {
                    input.what = What::Syscall { number, arguments, answer };
                }
            }
            Item::Read(read) => {
                if let Some(input) = &mut self.current.syscall {
                    input.reads.extend(ranges(read));
                }
            }
            Item::Unwound { slots: left, by } => {
                self.landed(by);
                for slot in slots(left).rev() {
                    self.current.frames.enter(slot, slot == calls::HANDLER);
                }
            }
            Item::Resumed => self.resumed(),
            Item::Handler if self.is_about_interrupted(when) => {}
            Item::Handler => self.handled(),
        }
    }

    fn is_about_interrupted(&self, when: When) -> bool {
        self.question.wants.interrupted && when.moment == self.question.moment
    }

    fn switch(&mut self, thread: u32) {
        if thread == self.number {
            return;
        }
        let next = self.others.remove(&thread).unwrap_or_else(Thread::new);
        let last = std::mem::replace(&mut self.current, next);
        self.others.insert(std::mem::replace(&mut self.number, thread), last);
    }

    /// A system call wrote memory.
    fn wrote(&mut self, when: When, written: &[u8]) {
        let mut found = Reasons::new();
        let mut any = false;
        for (address, bytes) in ranges(written) {
            any |= self.take_range(address, bytes, &mut found).is_some();
        }
        if any {
            self.system_call(when, found);
        }
    }

    /// A system call defined something that is wanted.
    fn system_call(&mut self, when: When, found: Reasons) -> &mut Input {
        let fresh = || Input {
            what: What::Syscall { number: 0, arguments: [0; 6], answer: 0 },
            moment: when.moment,
            found: Reasons::new(),
            answer: false,
            reads: Vec::new(),
        };
        let input = self.current.syscall.get_or_insert_with(fresh);
        input.found.extend(found);
        input
    }

    fn path(&mut self, record: &Record<'_>) {
        let room = self.question.moment.0 - record.when.moment.0;
        let whole = room >= record.exit.executed.into();
        let mut end = if whole { record.exit.begun() } else { room as u16 };
        let start = self.question.from.0.saturating_sub(record.when.moment.0) as u16;
        self.slice.walked += u64::from(record.exit.executed);
        if self.concerns(record) {
            let sets_only = self.needs_sets_only();
            if let Some(last) = end.checked_sub(1).filter(|_| self.current.landed.is_some())
                && last >= start
            {
                end = last;
                self.instruction_at(record, last);
            }
            for index in (start..end).rev() {
                let quick = &record.block.quick[usize::from(index)];
                if sets_only && quick.is_compact() && self.fast_path(record, index, quick) {
                    continue;
                }
                if self.passes_by(record, index) {
                    continue;
                }
                if sets_only
                    && quick.sets_only
                    && !self.touches_saved(record, index, quick.relevance)
                {
                    self.sets_only(record, index);
                    continue;
                }
                self.instruction_at(record, index);
            }
            return;
        }
        let crossings = &record.block.crossings[..record.exit.crossings.into()];
        for crossing in
            crossings.iter().rev().filter(|crossing| (start..end).contains(&crossing.index))
        {
            let index = crossing.index;
            let id = record.block.instructions[usize::from(index)];
            let instruction = &self.trace.blocks.statics[id as usize];
            let at = At { record, index, id, instruction };
            let mut found = Reasons::new();
            if self.cross(&at, &mut found) {
                self.include(&at, &found, &mut Next::default(), true);
            }
        }
    }

    /// Whether the instructions of a record must be looked at one by one.
    fn concerns(&mut self, record: &Record<'_>) -> bool {
        let exit = record.exit;
        if self.current.wanted.meets(&exit.defines)
            || record.block.irregular
            || self.current.syscall.is_some()
            || self.current.landed.is_some()
            || !self.current.frames.top().pending.is_empty()
            || self.looks_for_decisions() && exit.crossings > 0
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

    /// Whether a frame further out may wait for a decision, and be come back to in the middle of a record.
    fn looks_for_decisions(&self) -> bool {
        self.question.follow == Follow::Full || self.question.wants.control.is_some()
    }

    /// Whether an instruction stores where a register was restored from.
    fn touches_saved(&mut self, record: &Record<'_>, index: u16, relevance: Relevance) -> bool {
        if relevance != Relevance::Stores || self.saved.is_empty() {
            return false;
        }
        let accesses = &record.block.accesses[record.block.accesses_of(index)];
        accesses.iter().filter(|access| access.write).any(|access| {
            let at = address(access, record.payload, record.when.bases);
            at.is_some_and(|at| self.saved.has(at, access.size.into()))
        })
    }

    /// Whether an instruction neither defines nor decides anything that is wanted.
    #[inline]
    fn passes_by(&mut self, record: &Record<'_>, index: u16) -> bool {
        let quick = &record.block.quick[usize::from(index)];
        if quick.defines.meets(&self.current.wanted) {
            return false;
        }
        match quick.relevance {
            Relevance::Defines => true,
            Relevance::Decides => self.current.frames.top().pending.is_empty(),
            Relevance::Stores => {
                let (memory, saved) = (&mut self.memory, &mut self.saved);
                let accesses = &record.block.accesses[record.block.accesses_of(index)];
                !accesses.iter().filter(|access| access.write).any(|access| {
                    let at = address(access, record.payload, record.when.bases);
                    let bytes = access.size.into();
                    at.is_none_or(|at| memory.has(at, bytes) || saved.has(at, bytes))
                })
            }
            Relevance::Always => false,
        }
    }

    fn instruction_at(&mut self, record: &Record<'_>, index: u16) {
        let id = record.block.instructions[usize::from(index)];
        let instruction = &self.trace.blocks.statics[id as usize];
        self.instruction(&At { record, index, id, instruction });
    }

    fn instruction(&mut self, at: &At<'_>) {
        // Most instructions need no room of their own for this.
        let mut scratch = self.scratch.take().unwrap_or_default();
        let (found, next) = &mut *scratch;
        found.clear();
        next.clear();
        self.look_at(at, found, next);
        self.scratch = Some(scratch);
    }

    fn look_at(&mut self, at: &At<'_>, found: &mut Reasons, next: &mut Next) {
        let decided = self.control(at, found) | self.has_landed(found);
        let mut hit = decided;
        let meaning = at.meaning();
        if meaning.form == Form::Syscall
            && let Some(input) = self.current.syscall.take()
        {
            self.complete(at, &input);
        }
        if let Some(operation) = meaning.repeats {
            hit |= self.string(at, operation, found, next);
        } else if at.record.block.irregular && at.is_irregular() {
            hit |= self.irregular(at, found, next);
        } else if meaning.defines.meets(&self.current.wanted)
            || meaning.memory.iter().any(|operand| operand.write)
        {
            if self.restores(at) {
                return;
            }
            hit |= self.flows(at, found, next);
            self.saves(at);
        }
        if hit && !meaning.frame {
            self.include(at, found, next, decided);
        }
    }
}
