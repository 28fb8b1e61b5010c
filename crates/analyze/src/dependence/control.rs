//! Control dependence: which branch decided that an instruction was executed.
//!
//! The graph of control flow is found in the code: from everything that executed on, through the
//! bytes of what did not. Indirect jumps lead where they were seen to lead, and where the table that they
//! take their target from says (`tables`). One of which a single target is known may have others, so it
//! may leave the function, too: it is a decision, and all that follows hangs on it. A call goes on behind
//! itself, unless it was executed and never came back; and where jumps out of it (`longjmp`,
//! exceptions) were seen to land. A jump to where calls lead is a tail call and leaves the function.
//! Jumps of the linker's (a PLT, the code that binds it) lead elsewhere and decide nothing.
//!
//! An instruction depends on the last execution, in the same frame, of a branch such that the
//! instruction comes after it for certain on one way and not on another (Ferrante, Ottenstein and
//! Warren). Going backwards, that is the first such branch that is met, so nothing needs to be
//! noted while the program runs; walking forwards with a stack of open regions (Xin and Zhang)
//! gives the same.
//!
//! Parts: `finder` (the graph), `tables` (jump tables), `linkage` (the linker's jumps), `deciders`
//! (post-dominators).

mod deciders;
mod finder;
mod linkage;
mod tables;

use super::trace::Trace;
use deciders::parents;
use finder::Finder;
use rustc_hash::{FxHashMap, FxHashSet};

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
    /// Whether it ends with a jump of the linker's.
    pub linkage: bool,
}

impl Node {
    /// Whether it is decided here what comes next: there is more than one way on.
    #[must_use]
    pub fn decides(&self) -> bool {
        !self.linkage && self.next.len() + usize::from(self.leaves) > 1
    }
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
    /// Where each function is called, as far as calls say which one they mean.
    calls: FxHashMap<u64, Vec<u64>>,
    /// What each instruction of the trace is to control.
    statics: Vec<ControlFacts>,
}

#[derive(Clone, Copy)]
struct ControlFacts {
    node: u32,
    /// Whether it leaves its function by a jump.
    leaves: bool,
    /// Whether it is a call that does not only go on behind itself.
    branches: bool,
}

/// In place of a node: the instruction is in none.
pub const NO_CONTROL: u32 = u32::MAX;

impl Control {
    /// Finds the graph and the dependences.
    #[must_use]
    pub fn of(trace: &Trace, code: &dyn Code) -> Self {
        Self::with_functions(trace, code, &[])
    }

    /// The same, with the code of functions that need not have been executed, by where they are entered.
    #[must_use]
    pub fn with_functions(trace: &Trace, code: &dyn Code, functions: &[u64]) -> Self {
        let finder = Finder::new(trace, code, functions);
        let (nodes, node_of, tails) = finder.graph();
        let calls = finder.calls();
        let parents = parents(&nodes);
        let known = trace.blocks.statics.iter().map(|known| {
            let node = node_of.get(&known.pc).copied();
            ControlFacts {
                node: node.unwrap_or(NO_CONTROL),
                leaves: tails.contains(&known.pc),
                branches: known.meaning.form.is_call()
                    && node.is_some_and(|node| {
                        let node = &nodes[node as usize];
                        node.decides() && node.last == known.pc
                    }),
            }
        });
        let statics = known.collect();
        Self { nodes, node_of, parents, tails, calls, statics }
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

    /// Calls of the function that is entered at an address, and jumps there instead of calls, by address.
    #[must_use]
    pub fn calls_of(&self, entry: u64) -> &[u64] {
        self.calls.get(&entry).map_or(&[], Vec::as_slice)
    }

    /// Whether the jump at this address leaves its function.
    #[must_use]
    pub fn is_tail(&self, pc: u64) -> bool {
        self.tails.contains(&pc)
    }
}
