//! Finds the graph of control flow in the code: from everything that executed on, through the bytes of
//! what did not.

use super::{Code, Node, linkage, tables};
use crate::dependence::Trace;
use crate::dependence::block::Blocks;
use crate::semantics::Form;
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Code that leads nowhere near an exit is not followed any further than this.
const MOST_INSTRUCTIONS: usize = 4 << 20;

/// An instruction, as far as control is concerned.
#[derive(Clone, Copy)]
pub struct ControlStep {
    /// Where the next one is.
    pub next: u64,
    /// What it is to control.
    pub form: Form,
}

/// Where an instruction can lead; most have one way or two.
#[derive(Default)]
struct Ways {
    few: [u64; 2],
    count: usize,
    /// All of them, if there are more.
    many: Vec<u64>,
}

impl Ways {
    fn one(way: u64) -> Self {
        Self { few: [way, 0], count: 1, many: Vec::new() }
    }

    fn all(&self) -> &[u64] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }
}

impl FromIterator<u64> for Ways {
    fn from_iter<I: IntoIterator<Item = u64>>(ways: I) -> Self {
        let mut found = Self::default();
        for way in ways {
            if found.count < 2 {
                found.few[found.count] = way;
            } else {
                if found.many.is_empty() {
                    found.many.extend(found.few);
                }
                found.many.push(way);
            }
            found.count += 1;
        }
        found
    }
}

pub struct Finder<'a> {
    code: &'a dyn Code,
    steps: FxHashMap<u64, ControlStep>,
    /// Their addresses, in order.
    order: Vec<u64>,
    entries: FxHashSet<u64>,
    /// Where indirect jumps lead, seen or by their tables.
    jumps: FxHashMap<u64, BTreeSet<u64>>,
    /// Jumps all of whose targets are known.
    complete: FxHashSet<u64>,
    /// Jumps of the linker's.
    linkage: FxHashSet<u64>,
    /// Where jumps out of calls landed.
    non_local_jumps: FxHashMap<u64, BTreeSet<u64>>,
    /// Jumps that left frames, and were not seen to lead anywhere else.
    unwinders: FxHashSet<u64>,
    executed: FxHashSet<u64>,
    factory: InstructionInfoFactory,
}

impl<'a> Finder<'a> {
    /// Finds the code that a trace executed, and that of some functions, and where it leads.
    pub fn new(trace: &Trace, code: &'a dyn Code, functions: &[u64]) -> Self {
        let blocks = &trace.blocks;
        let mut finder = Self {
            code,
            steps: FxHashMap::default(),
            order: Vec::new(),
            entries: trace.called.clone(),
            jumps: FxHashMap::default(),
            complete: FxHashSet::default(),
            linkage: FxHashSet::default(),
            non_local_jumps: FxHashMap::default(),
            unwinders: FxHashSet::default(),
            executed: executed(blocks, &trace.taken),
            factory: InstructionInfoFactory::new(),
        };
        for known in &blocks.statics {
            let step = ControlStep { next: known.next(), form: known.meaning.form };
            finder.steps.insert(known.pc, step);
            if let (Form::Call(target), true) = (step.form, finder.executed.contains(&known.pc)) {
                finder.entries.insert(target);
            }
        }
        for (jump, target) in &trace.jumps {
            let pc = blocks.statics[*jump as usize].pc;
            finder.jumps.entry(pc).or_default().insert(*target);
        }
        for (call, target) in &trace.non_local_jumps {
            let pc = blocks.statics[*call as usize].pc;
            finder.non_local_jumps.entry(pc).or_default().insert(*target);
        }
        let unwinders = trace.unwinders.iter().map(|jump| blocks.statics[*jump as usize].pc);
        finder.unwinders = unwinders.filter(|pc| !finder.jumps.contains_key(pc)).collect();
        let stubs = blocks.statics.iter().filter(|known| {
            known.meaning.form == Form::IndirectJump && known.meaning.decides.is_none()
        });
        let stubs = stubs.map(|known| known.pc).collect();
        finder.linkage = linkage::find(code, &finder.steps, &finder.jumps, &stubs);
        finder.read_tables();
        finder.add(functions);
        finder.discover();
        finder
    }

    /// Adds functions that need not have been executed.
    fn add(&mut self, functions: &[u64]) {
        self.entries.extend(functions);
        for entry in functions {
            if let (false, Some(step)) = (self.steps.contains_key(entry), self.decode(*entry)) {
                self.steps.insert(*entry, step);
            }
        }
    }

    /// Where each function is called, by the calls that say which one they mean, and by jumps.
    pub fn calls(&self) -> FxHashMap<u64, Vec<u64>> {
        let mut calls: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
        for pc in &self.order {
            match self.steps[pc].form {
                Form::Call(target) => calls.entry(target).or_default().push(*pc),
                Form::Jump(target) | Form::Branch(target) if self.entries.contains(&target) => {
                    calls.entry(target).or_default().push(*pc);
                }
                _ => {}
            }
        }
        calls
    }

    /// Adds where jumps can lead by their tables.
    fn read_tables(&mut self) {
        let steps = &self.steps;
        let before = |pc| linkage::before(steps, pc);
        for (jump, seen) in &mut self.jumps {
            if !self.linkage.contains(jump)
                && let Some(targets) = tables::targets(self.code, &before, *jump, seen)
            {
                seen.extend(targets);
                self.complete.insert(*jump);
            }
        }
    }

    /// Follows the code from what is known to what is not.
    fn discover(&mut self) {
        let mut open: Vec<u64> = self.steps.keys().copied().collect();
        open.sort_unstable();
        while let Some(pc) = open.pop() {
            for next in self.next(pc).0.all() {
                if self.steps.len() < MOST_INSTRUCTIONS
                    && !self.steps.contains_key(next)
                    && let Some(step) = self.decode(*next)
                {
                    self.steps.insert(*next, step);
                    open.push(*next);
                }
            }
        }
        self.order = self.steps.keys().copied().collect();
        self.order.sort_unstable();
    }

    fn decode(&mut self, pc: u64) -> Option<ControlStep> {
        let mut bytes = [0; 15];
        let count = self.code.read(pc, &mut bytes);
        let mut decoder = Decoder::with_ip(64, &bytes[..count], pc, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let meaning = crate::semantics::Meaning::of(&instruction, &mut self.factory);
        Some(ControlStep { next: instruction.next_ip(), form: meaning.form })
    }

    /// Where an instruction can lead within its function, and whether it can leave that.
    fn next(&self, pc: u64) -> (Ways, bool) {
        let Some(step) = self.steps.get(&pc) else { return (Ways::default(), true) };
        let ways: Ways = match step.form {
            Form::Plain | Form::Syscall => Ways::one(step.next),
            Form::Branch(target) if target == step.next => Ways::one(target),
            Form::Branch(target) => [step.next, target].into_iter().collect(),
            Form::Jump(target) if self.entries.contains(&target) => Ways::default(),
            Form::Jump(target) => Ways::one(target),
            Form::IndirectJump => {
                let targets = self.jumps.get(&pc).into_iter().flatten();
                // Where one target is a function they all are.
                match targets.clone().any(|target| self.entries.contains(target)) {
                    true => Ways::default(),
                    false => targets.copied().collect(),
                }
            }
            Form::Call(_) | Form::IndirectCall => {
                let returns = if self.executed.contains(&pc) {
                    self.executed.contains(&step.next)
                } else {
                    !self.entries.contains(&step.next)
                };
                let non_local_jumps = self.non_local_jumps.get(&pc).into_iter().flatten().copied();
                let non_local_jumps = non_local_jumps.filter(|pc| *pc != step.next);
                non_local_jumps.chain(returns.then_some(step.next)).collect()
            }
            Form::Return | Form::Stop => Ways::default(),
        };
        let may_lead_elsewhere = ways.count == 1
            && step.form == Form::IndirectJump
            && !self.complete.contains(&pc)
            && !self.linkage.contains(&pc);
        let leaves = ways.count == 0 || may_lead_elsewhere;
        (ways, leaves)
    }

    /// The nodes, the node of every instruction, and the jumps that leave their function.
    pub fn graph(&self) -> (Vec<Node>, FxHashMap<u64, u32>, FxHashSet<u64>) {
        let mut leaders: FxHashSet<u64> = FxHashSet::default();
        let mut tails = FxHashSet::default();
        let mut reached: FxHashSet<u64> = FxHashSet::default();
        for pc in &self.order {
            let step = &self.steps[pc];
            let (next, leaves) = self.next(*pc);
            let jumps = matches!(step.form, Form::Jump(_) | Form::IndirectJump);
            let leads_on = self.unwinders.contains(pc) || self.linkage.contains(pc);
            if leaves && next.count == 0 && jumps && !leads_on {
                tails.insert(*pc);
            }
            let straight = next.all() == [step.next]
                && matches!(
                    step.form,
                    Form::Plain | Form::Syscall | Form::Call(_) | Form::IndirectCall
                );
            for target in next.all() {
                if !straight || !reached.insert(*target) {
                    leaders.insert(*target);
                }
            }
        }
        let (mut nodes, mut node_of): (Vec<Node>, FxHashMap<u64, u32>) = Default::default();
        node_of.reserve(self.order.len());
        for pc in &self.order {
            // An instruction that nothing runs into, or that several do, begins a node.
            let begins = leaders.contains(pc) || !reached.contains(pc);
            if !begins {
                continue;
            }
            let number = nodes.len() as u32;
            let (mut last, mut at) = (*pc, self.steps[pc]);
            node_of.insert(*pc, number);
            loop {
                let (next, leaves) = self.next(last);
                let [only] = *next.all() else { break };
                let jumps = matches!(at.form, Form::Jump(_) | Form::Branch(_) | Form::IndirectJump);
                if leaves || jumps || leaders.contains(&only) {
                    break;
                }
                let Some(following) = self.steps.get(&only) else { break };
                node_of.insert(only, number);
                (last, at) = (only, *following);
            }
            let linkage = self.linkage.contains(&last);
            nodes.push(Node { start: *pc, last, next: Vec::new(), leaves: false, linkage });
        }
        for node in &mut nodes {
            let (next, leaves) = self.next(node.last);
            node.next = next.all().iter().filter_map(|pc| node_of.get(pc).copied()).collect();
            node.next.sort_unstable();
            node.next.dedup();
            node.leaves = leaves || node.next.is_empty();
        }
        (nodes, node_of, tails)
    }
}

/// Addresses that executed.
fn executed(blocks: &Blocks, taken: &[u64]) -> FxHashSet<u64> {
    let mut pcs = FxHashSet::default();
    for (exit, _) in blocks.exits.iter().zip(taken).filter(|(_, taken)| **taken > 0) {
        let block = &blocks.blocks[exit.block as usize];
        let ran = &block.instructions[..exit.executed.into()];
        pcs.extend(ran.iter().map(|id| blocks.statics[*id as usize].pc));
    }
    pcs
}
