//! Who wants what: beside the exact set of wanted things, for the nodes near the question, the
//! nodes that want each of them.
//!
//! Most things are wanted by one or two nodes, but some by nearly all: the pointer to an
//! interpreter's state, say. Lists are looked through while they are short and indexed when they
//! are long, so that the work grows with the number of nodes and not with its square.

use super::graph::{Because, Kind};
use crate::semantics::Parts;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Longer lists are indexed.
const SHORT: usize = 16;

/// Nodes that want a thing, each kind of wanting once, in the order in which they came.
#[derive(Default)]
struct List {
    nodes: Vec<(u32, Kind)>,
    /// The same as a set, if there are many.
    index: FxHashSet<(u32, Kind)>,
}

impl List {
    fn note(&mut self, node: u32, kind: Kind) {
        if self.nodes.len() < SHORT {
            if self.nodes.contains(&(node, kind)) {
                return;
            }
        } else {
            if self.index.is_empty() {
                self.index.extend(&self.nodes);
            }
            if !self.index.insert((node, kind)) {
                return;
            }
        }
        self.nodes.push((node, kind));
    }
}

/// Nodes by what they want.
#[derive(Default)]
pub struct Wanters {
    parts: FxHashMap<(u32, u8), List>,
    bytes: FxHashMap<u64, List>,
}

impl Wanters {
    /// A node wants register parts of a thread.
    pub fn want_parts(&mut self, thread: u32, parts: Parts, node: u32, kind: Kind) {
        for part in parts.iter() {
            self.parts.entry((thread, part)).or_default().note(node, kind);
        }
    }

    /// A node wants those of some bytes whose bit is set.
    pub fn want_bytes(&mut self, address: u64, which: u64, node: u32, kind: Kind) {
        for byte in (0..64).filter(|byte| which >> byte & 1 == 1) {
            self.bytes.entry(address.wrapping_add(byte)).or_default().note(node, kind);
        }
    }

    /// Register parts are defined: who wanted them?
    pub fn take_parts(&mut self, thread: u32, parts: Parts, found: &mut Reasons) {
        for part in parts.iter() {
            for (node, kind) in self.parts.remove(&(thread, part)).unwrap_or_default().nodes {
                found.add(node, kind, Because::Parts(Parts::numbered(part)));
            }
        }
    }

    /// Bytes are defined: who wanted them?
    pub fn take_bytes(&mut self, address: u64, which: u64, found: &mut Reasons) {
        for byte in (0..64).filter(|byte| which >> byte & 1 == 1) {
            let address = address.wrapping_add(byte);
            for (node, kind) in self.bytes.remove(&address).unwrap_or_default().nodes {
                found.add(node, kind, Because::Memory { address, bytes: 1 });
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A node that wanted something that is now defined, and through what.
pub type Reason = (u32, Kind, Because);

/// Nodes that wanted something that is now defined.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    reasons: Vec<Reason>,
    /// Only if there are many.
    index: Option<Box<Index>>,
}

/// Where among many reasons one can be joined with another.
#[derive(Clone, Debug, Default)]
struct Index {
    /// So many reasons are in the index.
    known: usize,
    /// The first reason of register parts of each node and kind.
    parts: FxHashMap<(u32, Kind), usize>,
    /// Reasons of memory by node, kind, and the address behind it.
    memory: BTreeSet<(u32, Kind, u64, usize)>,
}

impl Reasons {
    /// Nobody yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All reasons, in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Reason> {
        self.reasons.iter()
    }

    /// Adds a reason as it is.
    pub fn push(&mut self, reason: Reason) {
        self.reasons.push(reason);
    }

    /// Adds reasons as they are.
    pub fn extend(&mut self, reasons: impl IntoIterator<Item = Reason>) {
        self.reasons.extend(reasons);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.reasons.clear();
        self.index = None;
    }

    /// Adds a reason, joining it with the first one of the same node that it touches.
    pub fn add(&mut self, node: u32, kind: Kind, because: Because) {
        let same = match self.reasons.len() <= SHORT {
            true => {
                let joins = |reason: &Reason| joins(reason, node, kind, because);
                self.reasons.iter().position(joins)
            }
            false => {
                let index = self.index.get_or_insert_default();
                index.learn(&self.reasons);
                index.find(node, kind, because)
            }
        };
        let Some(same) = same else { return self.reasons.push((node, kind, because)) };
        match (&mut self.reasons[same].2, because) {
            (Because::Parts(known), Because::Parts(more)) => *known |= more,
            (Because::Memory { address, bytes }, _) => {
                let end = address.wrapping_add(u64::from(*bytes));
                *bytes += 1;
                if let Some(index) = &mut self.index {
                    index.memory.remove(&(node, kind, end, same));
                    index.memory.insert((node, kind, end.wrapping_add(1), same));
                }
            }
            _ => {}
        }
    }
}

impl IntoIterator for Reasons {
    type Item = Reason;
    type IntoIter = std::vec::IntoIter<Reason>;

    fn into_iter(self) -> Self::IntoIter {
        self.reasons.into_iter()
    }
}

/// Whether a byte or part can be joined with a reason.
fn joins(reason: &Reason, node: u32, kind: Kind, because: Because) -> bool {
    let (other, of, known) = *reason;
    (other, of) == (node, kind)
        && match (known, because) {
            (Because::Parts(_), Because::Parts(_)) => true,
            (Because::Memory { address, bytes }, Because::Memory { address: next, .. }) => {
                address.wrapping_add(u64::from(bytes)) == next
            }
            _ => false,
        }
}

impl Index {
    /// Takes in the reasons that it does not know yet.
    fn learn(&mut self, reasons: &[Reason]) {
        for (at, (node, kind, because)) in reasons.iter().enumerate().skip(self.known) {
            match *because {
                Because::Parts(_) => {
                    self.parts.entry((*node, *kind)).or_insert(at);
                }
                Because::Memory { address, bytes } => {
                    let end = address.wrapping_add(u64::from(bytes));
                    self.memory.insert((*node, *kind, end, at));
                }
                Because::Branch | Because::Call => {}
            }
        }
        self.known = reasons.len();
    }

    fn find(&self, node: u32, kind: Kind, because: Because) -> Option<usize> {
        match because {
            Because::Parts(_) => self.parts.get(&(node, kind)).copied(),
            Because::Memory { address, .. } => {
                let (first, last) = ((node, kind, address, 0), (node, kind, address, usize::MAX));
                self.memory.range(first..=last).next().map(|(.., at)| *at)
            }
            Because::Branch | Because::Call => None,
        }
    }
}

#[cfg(test)]
mod tests;
