//! The answer: executions, and the edges between them.

use super::question::Question;
use crate::semantics::Parts;
use base::StepCount;
use base::Tick;
use rustc_hash::FxHashMap;

/// Why one execution depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A value went from there to here.
    Value,
    /// A value there formed the address of memory read or written here.
    Address,
    /// It was decided there that this was executed, or which of two values it took.
    Control,
}

/// What carried a dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Because {
    /// Register parts.
    Parts(Parts),
    /// Bytes of memory.
    Memory {
        /// First byte.
        address: u64,
        /// How many.
        bytes: u32,
    },
    /// A branch.
    Branch,
    /// A call.
    Call,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// What was asked.
    Question,
    /// An instruction was executed.
    Executed,
    /// A system call brought something in.
    Syscall {
        /// Its number.
        number: u64,
        /// Its arguments.
        arguments: [u64; 6],
        /// Its answer.
        answer: i64,
    },
}

/// An execution of an instruction that is in the slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub what: What,
    /// The instruction, as a number of the trace; none for the question, and for a system call
    /// made before the window.
    pub instruction: Option<u32>,
    /// Its thread.
    pub thread: u32,
    /// When: instructions of all threads executed before.
    pub moment: StepCount,
    /// Ticks before it; nothing of the question, and of a system call made before the window.
    pub tick: Option<Tick>,
    /// Which execution of the instruction it is: from 1 on, or from -1, which is the last, if only
    /// the end of the run was looked at.
    pub instance: i64,
    /// Its frame, as a number of [`Slice::frames`].
    pub frame: u32,
    /// How many edges lie between it and the question, at least.
    pub depth: u32,
}

impl Node {
    /// The one that stands for the question, asked in a frame.
    pub(super) fn question(question: &Question<'_>, frame: u32) -> Self {
        Self {
            what: What::Question,
            instruction: None,
            thread: question.thread,
            moment: question.moment,
            tick: None,
            instance: 0,
            frame,
            depth: 0,
        }
    }
}

/// A dependence: `user` on `on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who depends, as a number of [`Slice::nodes`].
    pub user: u32,
    /// On whom.
    pub on: u32,
    /// Why.
    pub kind: Kind,
    /// Through what.
    pub because: Because,
}

/// A frame: an active call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Who called, if the call is in the part of the window that was looked at: frame,
    /// instruction, which execution of it, when.
    pub caller: Option<(u32, u32, i64, StepCount)>,
    /// Address of its return address; 0 if not known.
    pub slot: u64,
}

/// What a question was answered with.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// Executions, the question first, then by falling time, up to the limit of the question.
    pub nodes: Vec<Node>,
    /// Dependences between them.
    pub edges: Vec<Edge>,
    /// Frames of the nodes.
    pub frames: Vec<Frame>,
    /// How often each instruction took part in each thread, all of it: (thread, instruction).
    pub counts: FxHashMap<(u32, u32), u64>,
    /// Memory whose value was made before the window.
    pub before: Vec<(u64, u64)>,
    /// Registers whose value was made before the window.
    pub registers_before: FxHashMap<u32, Parts>,
    /// Who used memory of a frame that nothing had written since its function was entered: the node, the address.
    pub unwritten: Vec<(u32, u64)>,
    /// Whether the limit of nodes was reached.
    pub cut: bool,
    /// How many instructions were gone through.
    pub walked: u64,
    /// Saved registers that were passed by.
    pub bypassed: u64,
    /// Whether something was still looked for where the trace begins.
    pub is_open: bool,
    /// Whether it goes forward: everything that was made from what is asked about.
    pub forward: bool,
}

impl Slice {
    /// Executions in the slice, system calls apart.
    #[must_use]
    pub fn executions(&self) -> u64 {
        self.counts.values().sum()
    }
}
