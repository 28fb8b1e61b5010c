//! Control dependence: which branch decided that an instruction was executed.
//!
//! The graph of control flow is found in the code: from everything that executed on, through the
//! bytes of what did not. Indirect jumps lead where they were seen to lead. A call goes on behind
//! itself, unless it was executed and never came back; and where jumps out of it (`longjmp`,
//! exceptions) were seen to land. A jump to where calls lead is a tail call and leaves the function.
//!
//! An instruction depends on the last execution, in the same frame, of a branch such that the
//! instruction comes after it for certain on one way and not on another (Ferrante, Ottenstein and
//! Warren). Going backwards, that is the first such branch that is met, so nothing needs to be
//! noted while the program runs; walking forwards with a stack of open regions (Xin and Zhang)
//! gives the same.

use super::block::Blocks;
use super::trace::Trace;
use crate::semantics::Form;
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// The bytes of the program's code, executed or not.
pub trait Code {
    /// Reads what there is from `address` on; how many bytes.
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize;
}

/// No more than what executed.
pub struct NoCode;

impl Code for NoCode {
    fn read(&self, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

/// The code that is in the program's files.
impl Code for symbols::Program {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let longest = buffer.len();
        let mut read = |count: usize| self.code_bytes(base::Address(address), &mut buffer[..count]);
        (1..=longest).rev().find(|count| read(*count)).unwrap_or(0)
    }
}

/// Code that leads nowhere near an exit is not followed any further than this.
const MOST_INSTRUCTIONS: usize = 4 << 20;

/// A node of the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Where it begins.
    pub start: u64,
    /// Its last instruction.
    pub last: u64,
    /// Nodes that can come next, by number. The exit is not among them.
    pub next: Vec<u32>,
    /// Whether the function can be left here.
    pub leaves: bool,
}

/// The control dependences of a program.
pub struct Control {
    nodes: Vec<Node>,
    /// Node of every instruction.
    node_of: FxHashMap<u64, u32>,
    /// For each node, the branches (by address) that decide about it.
    parents: Vec<Vec<u64>>,
    /// Jumps that leave their function.
    tails: FxHashSet<u64>,
    /// What each instruction of the trace is to control.
    statics: Vec<Known>,
}

#[derive(Clone, Copy)]
struct Known {
    node: u32,
    /// Whether it leaves its function by a jump.
    leaves: bool,
    /// Whether it is a call that does not only go on behind itself.
    branches: bool,
}

/// In place of a node: the instruction is in none.
pub const NO_CONTROL: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Step {
    next: u64,
    form: Form,
}

struct Finder<'a> {
    code: &'a dyn Code,
    steps: BTreeMap<u64, Step>,
    entries: FxHashSet<u64>,
    jumps: FxHashMap<u64, BTreeSet<u64>>,
    /// Where jumps out of calls landed.
    landings: FxHashMap<u64, BTreeSet<u64>>,
    /// Jumps that left frames, and were not seen to lead anywhere else.
    unwinders: FxHashSet<u64>,
    executed: FxHashSet<u64>,
    factory: InstructionInfoFactory,
}

impl Control {
    /// Finds the graph and the dependences.
    #[must_use]
    pub fn of(trace: &Trace, code: &dyn Code) -> Self {
        let finder = Finder::new(trace, code);
        let (nodes, node_of, tails) = finder.graph();
        let parents = parents(&nodes);
        let known = trace.blocks.statics.iter().map(|known| {
            let node = node_of.get(&known.pc).copied();
            let ways = node.map_or(0, |node| nodes[node as usize].next.len());
            Known {
                node: node.unwrap_or(NO_CONTROL),
                leaves: tails.contains(&known.pc),
                branches: known.meaning.form.is_call()
                    && ways > 1
                    && node.is_some_and(|node| nodes[node as usize].last == known.pc),
            }
        });
        let statics = known.collect();
        Self { nodes, node_of, parents, tails, statics }
    }

    /// The nodes of the graph.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of an instruction.
    #[must_use]
    pub fn node(&self, pc: u64) -> Option<u32> {
        self.node_of.get(&pc).copied()
    }

    /// The node of an instruction, by its number in the trace.
    #[must_use]
    pub fn node_of(&self, instruction: u32) -> u32 {
        self.statics.get(instruction as usize).map_or(NO_CONTROL, |known| known.node)
    }

    /// Whether an instruction is a jump that leaves its function, by its number in the trace.
    #[must_use]
    pub fn leaves(&self, instruction: u32) -> bool {
        self.statics.get(instruction as usize).is_some_and(|known| known.leaves)
    }

    /// Whether a call may go on elsewhere than behind itself, by its number in the trace.
    #[must_use]
    pub fn branches(&self, call: u32) -> bool {
        self.statics.get(call as usize).is_some_and(|known| known.branches)
    }

    /// The branches that decide about a node, by address, in order.
    #[must_use]
    pub fn parents(&self, node: u32) -> &[u64] {
        &self.parents[node as usize]
    }

    /// Whether the branch at an address decides about a node. Interpreters have hundreds that do.
    #[must_use]
    pub fn decides(&self, pc: u64, node: u32) -> bool {
        self.parents(node).binary_search(&pc).is_ok()
    }

    /// Whether the jump at this address leaves its function.
    #[must_use]
    pub fn is_tail(&self, pc: u64) -> bool {
        self.tails.contains(&pc)
    }
}

impl<'a> Finder<'a> {
    fn new(trace: &Trace, code: &'a dyn Code) -> Self {
        let blocks = &trace.blocks;
        let mut finder = Self {
            code,
            steps: BTreeMap::new(),
            entries: trace.called.clone(),
            jumps: FxHashMap::default(),
            landings: FxHashMap::default(),
            unwinders: FxHashSet::default(),
            executed: executed(blocks, &trace.taken),
            factory: InstructionInfoFactory::new(),
        };
        for known in &blocks.statics {
            let step = Step { next: known.next(), form: known.meaning.form };
            finder.steps.insert(known.pc, step);
            if let (Form::Call(target), true) = (step.form, finder.executed.contains(&known.pc)) {
                finder.entries.insert(target);
            }
        }
        for (jump, target) in &trace.jumps {
            let pc = blocks.statics[*jump as usize].pc;
            finder.jumps.entry(pc).or_default().insert(*target);
        }
        for (call, target) in &trace.landings {
            let pc = blocks.statics[*call as usize].pc;
            finder.landings.entry(pc).or_default().insert(*target);
        }
        let unwinders = trace.unwinders.iter().map(|jump| blocks.statics[*jump as usize].pc);
        finder.unwinders = unwinders.filter(|pc| !finder.jumps.contains_key(pc)).collect();
        finder.discover();
        finder
    }

    /// Follows the code from what is known to what is not.
    fn discover(&mut self) {
        let mut open: Vec<u64> = self.steps.keys().copied().collect();
        while let Some(pc) = open.pop() {
            for next in self.next(pc).0 {
                if self.steps.len() < MOST_INSTRUCTIONS
                    && !self.steps.contains_key(&next)
                    && let Some(step) = self.decode(next)
                {
                    self.steps.insert(next, step);
                    open.push(next);
                }
            }
        }
    }

    fn decode(&mut self, pc: u64) -> Option<Step> {
        let mut bytes = [0; 15];
        let count = self.code.read(pc, &mut bytes);
        let mut decoder = Decoder::with_ip(64, &bytes[..count], pc, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let meaning = crate::semantics::Meaning::of(&instruction, &mut self.factory);
        Some(Step { next: instruction.next_ip(), form: meaning.form })
    }

    /// Where an instruction can lead within its function, and whether it can leave that.
    fn next(&self, pc: u64) -> (Vec<u64>, bool) {
        let Some(step) = self.steps.get(&pc) else { return (Vec::new(), true) };
        match step.form {
            Form::Plain | Form::Syscall => (vec![step.next], false),
            Form::Branch(target) if target == step.next => (vec![target], false),
            Form::Branch(target) => (vec![step.next, target], false),
            Form::Jump(target) if self.entries.contains(&target) => (Vec::new(), true),
            Form::Jump(target) => (vec![target], false),
            Form::IndirectJump => {
                let seen = self.jumps.get(&pc).into_iter().flatten().copied();
                let inside: Vec<u64> =
                    seen.filter(|target| !self.entries.contains(target)).collect();
                let leaves = inside.is_empty();
                (inside, leaves)
            }
            Form::Call(_) | Form::IndirectCall => {
                let returns = if self.executed.contains(&pc) {
                    self.executed.contains(&step.next)
                } else {
                    !self.entries.contains(&step.next)
                };
                let landings = self.landings.get(&pc).into_iter().flatten().copied();
                let mut next: Vec<u64> = landings.filter(|pc| *pc != step.next).collect();
                next.extend(returns.then_some(step.next));
                let leaves = next.is_empty();
                (next, leaves)
            }
            Form::Return | Form::Stop => (Vec::new(), true),
        }
    }

    fn graph(&self) -> (Vec<Node>, FxHashMap<u64, u32>, FxHashSet<u64>) {
        let mut leaders: FxHashSet<u64> = FxHashSet::default();
        let mut tails = FxHashSet::default();
        let mut reached: FxHashSet<u64> = FxHashSet::default();
        for (pc, step) in &self.steps {
            let (next, leaves) = self.next(*pc);
            let jumps = matches!(step.form, Form::Jump(_) | Form::IndirectJump);
            if leaves && jumps && !self.unwinders.contains(pc) {
                tails.insert(*pc);
            }
            let straight = next == [step.next]
                && matches!(
                    step.form,
                    Form::Plain | Form::Syscall | Form::Call(_) | Form::IndirectCall
                );
            for target in next {
                if !straight || !reached.insert(target) {
                    leaders.insert(target);
                }
            }
        }
        let (mut nodes, mut node_of): (Vec<Node>, FxHashMap<u64, u32>) = Default::default();
        for (pc, step) in &self.steps {
            // An instruction that nothing runs into, or that several do, begins a node.
            let begins = leaders.contains(pc) || !reached.contains(pc);
            if !begins {
                continue;
            }
            let number = nodes.len() as u32;
            let (mut last, mut at) = (*pc, *step);
            node_of.insert(*pc, number);
            loop {
                let (next, leaves) = self.next(last);
                let [only] = next[..] else { break };
                let jumps = matches!(at.form, Form::Jump(_) | Form::Branch(_) | Form::IndirectJump);
                if leaves || jumps || leaders.contains(&only) {
                    break;
                }
                let Some(following) = self.steps.get(&only) else { break };
                node_of.insert(only, number);
                (last, at) = (only, *following);
            }
            nodes.push(Node { start: *pc, last, next: Vec::new(), leaves: false });
        }
        for node in &mut nodes {
            let (next, leaves) = self.next(node.last);
            node.next = next.iter().filter_map(|pc| node_of.get(pc).copied()).collect();
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

/// The branches that decide about each node.
fn parents(nodes: &[Node]) -> Vec<Vec<u64>> {
    let after = post_dominators(nodes);
    let mut parents = vec![Vec::new(); nodes.len()];
    for (number, node) in (0u32..).zip(nodes) {
        if node.next.len() < 2 {
            continue;
        }
        for next in &node.next {
            let mut at = Some(*next);
            while let Some(current) = at.filter(|current| Some(*current) != after[number as usize])
            {
                let list: &mut Vec<u64> = &mut parents[current as usize];
                list.push(node.last);
                at = after[current as usize];
            }
        }
    }
    for list in &mut parents {
        list.sort_unstable();
        list.dedup();
    }
    parents
}

/// The immediate post-dominator of each node; none is the exit. A node from which no exit can be
/// reached is taken to have one: the first by address of each such part of the graph.
#[must_use]
pub fn post_dominators(nodes: &[Node]) -> Vec<Option<u32>> {
    let count = nodes.len();
    let exit = count as u32;
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); count + 1];
    for (number, node) in (0u32..).zip(nodes) {
        for next in &node.next {
            before[*next as usize].push(number);
        }
        if node.leaves {
            before[exit as usize].push(number);
        }
    }
    for lost in lost(nodes, &before) {
        before[exit as usize].push(lost);
    }
    let leaves: FxHashSet<u32> = before[exit as usize].iter().copied().collect();
    let order = reverse_order(&before, exit);
    let mut position = vec![usize::MAX; count + 1];
    for (index, node) in order.iter().enumerate() {
        position[*node as usize] = index;
    }
    let mut after: Vec<Option<u32>> = vec![None; count + 1];
    after[exit as usize] = Some(exit);
    let mut changed = true;
    while changed {
        changed = false;
        for number in order.iter().copied().skip(1) {
            let node = &nodes[number as usize];
            let ways = node.next.iter().copied().chain(leaves.contains(&number).then_some(exit));
            let known = ways.filter(|way| after[*way as usize].is_some());
            let meet = known.reduce(|left, right| common(&after, &position, left, right));
            if meet.is_some() && after[number as usize] != meet {
                after[number as usize] = meet;
                changed = true;
            }
        }
    }
    after.truncate(count);
    after.into_iter().map(|node| node.filter(|node| *node != exit)).collect()
}

/// The nearest node that comes after both.
fn common(after: &[Option<u32>], position: &[usize], mut left: u32, mut right: u32) -> u32 {
    while left != right {
        while position[left as usize] > position[right as usize] {
            left = after[left as usize].expect("processed before");
        }
        while position[right as usize] > position[left as usize] {
            right = after[right as usize].expect("processed before");
        }
    }
    left
}

/// Nodes that need an exit of their own so that every node can reach one.
fn lost(nodes: &[Node], before: &[Vec<u32>]) -> Vec<u32> {
    let mut reaches = vec![false; nodes.len()];
    let mark = |from: Vec<u32>, reaches: &mut Vec<bool>| {
        let mut open = from;
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reaches[node as usize], true) {
                open.extend(&before[node as usize]);
            }
        }
    };
    mark(before[nodes.len()].clone(), &mut reaches);
    let mut added = Vec::new();
    for number in 0..nodes.len() as u32 {
        if !reaches[number as usize] {
            added.push(number);
            mark(vec![number], &mut reaches);
        }
    }
    added
}

/// Nodes that reach the exit, in reverse postorder of the reversed graph.
fn reverse_order(before: &[Vec<u32>], exit: u32) -> Vec<u32> {
    let mut seen = vec![false; before.len()];
    let mut order = Vec::with_capacity(before.len());
    let mut stack = vec![(exit, 0)];
    seen[exit as usize] = true;
    while let Some((node, at)) = stack.last_mut() {
        match before[*node as usize].get(*at) {
            Some(previous) => {
                *at += 1;
                if !std::mem::replace(&mut seen[*previous as usize], true) {
                    stack.push((*previous, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Nodes numbered as given; those without successors leave.
    fn graph(edges: &[&[u32]]) -> Vec<Node> {
        let node = |(number, next): (usize, &&[u32])| {
            let mut next = next.to_vec();
            next.sort_unstable();
            next.dedup();
            let (at, leaves) = (number as u64, next.is_empty());
            Node { start: at, last: at, next, leaves }
        };
        edges.iter().enumerate().map(node).collect()
    }

    /// By definition: `b` comes after `a` if no exit can be reached from `a` without `b`.
    fn comes_after(nodes: &[Node], a: u32, b: u32, extra: &[u32]) -> bool {
        let mut seen = vec![false; nodes.len()];
        let mut open = vec![a];
        while let Some(node) = open.pop() {
            if node == b || std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            if nodes[node as usize].leaves || extra.contains(&node) {
                return false;
            }
            open.extend(&nodes[node as usize].next);
        }
        true
    }

    #[test]
    fn an_if_decides_about_its_branches_and_a_loop_about_its_body() {
        // 0: if → 1 or 2; both to 3; 3: loop → 4 → 3, or 5
        let nodes = graph(&[&[1, 2], &[3], &[3], &[4, 5], &[3], &[]]);
        let parents = parents(&nodes);
        assert_eq!(parents, [vec![], vec![0], vec![0], vec![3], vec![3], vec![]]);
    }

    proptest! {
        #[test]
        fn dependences_are_those_of_the_definition(
            edges in prop::collection::vec(prop::collection::vec(0u32..9, 0..3), 9)
        ) {
            let edges: Vec<&[u32]> = edges.iter().map(Vec::as_slice).collect();
            let nodes = graph(&edges);
            let mut before = vec![Vec::new(); nodes.len() + 1];
            for (number, node) in (0u32..).zip(&nodes) {
                node.next.iter().for_each(|next| before[*next as usize].push(number));
                if node.leaves { before[nodes.len()].push(number); }
            }
            let extra = lost(&nodes, &before);
            let parents = parents(&nodes);
            for x in 0..nodes.len() as u32 {
                for (b, branch) in (0u32..).zip(&nodes) {
                    let depends = branch.next.len() > 1
                        && branch.next.iter().any(|s| comes_after(&nodes, *s, x, &extra))
                        && (x == b || !comes_after(&nodes, b, x, &extra));
                    prop_assert_eq!(parents[x as usize].contains(&branch.last), depends, "{} on {}", x, b);
                }
            }
        }
    }
}
