//! What can be asked.

use super::forward::Forward;
use super::graph::{Kind, Slice};
use super::members::Members;
use super::walk::Walk;
use crate::dependence::Trace;
use crate::dependence::control::Control;
use crate::semantics::Parts;
use base::StepCount;

/// Which dependences to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Values alone: a thin slice.
    Thin,
    /// Values and addresses.
    Data,
    /// Everything.
    Full,
}

impl Follow {
    /// Whether edges of this kind are followed.
    #[must_use]
    pub fn follows(self, kind: Kind) -> bool {
        match kind {
            Kind::Value => true,
            Kind::Address => self != Self::Thin,
            Kind::Control => self == Self::Full,
        }
    }
}

/// What is wanted at the moment of the question.
#[derive(Clone, Debug, Default)]
pub struct Wants {
    /// Register parts of the thread.
    pub parts: Parts,
    /// Memory: address, bytes.
    pub memory: Vec<(u64, u64)>,
    /// Why the instruction at this address comes to be executed.
    pub control: Option<u64>,
    /// If a signal handler is entered at that very moment: whether what it interrupted is meant.
    pub interrupted: bool,
}

/// A question.
pub struct Question<'a> {
    /// The thread.
    pub thread: u32,
    /// The moment: before the instruction that this many came before.
    pub moment: StepCount,
    /// What is wanted there.
    pub wants: Wants,
    /// Which dependences to follow.
    pub follow: Follow,
    /// Control dependences, for [`Follow::Full`].
    pub control: Option<&'a Control>,
    /// Nothing before this moment is looked at.
    pub from: StepCount,
    /// Going forward, nothing from this moment on is looked at.
    pub to: StepCount,
    /// Only these executions take part, and what comes from others is not followed: a chop.
    pub within: Option<&'a Members>,
    /// Most executions of which edges are kept.
    pub nodes: usize,
    /// Most edges between the question and an execution; only within `nodes`.
    pub depth: u32,
    /// Bytes of memory whose origin is of no interest.
    pub prune_memory: Vec<(u64, u64)>,
    /// Registers whose origin is of no interest.
    pub prune_parts: Parts,
    /// Only these threads take part; all if none are given.
    pub threads: Vec<u32>,
    /// Whether saved and restored registers are passed by.
    pub bypass: bool,
    /// Memory that nobody can write to, by address, in order: address, bytes. What is read there stands
    /// for where it was read (a digit for a number), so the address is followed as a value.
    pub constants: Vec<(u64, u64)>,
    /// Code (by address) that keeps lists of its own, such as an allocator's: what it reads from memory is
    /// not followed, as that leads to whoever used it before.
    pub bookkeepers: Option<&'a dyn Fn(u64) -> bool>,
    /// Whether memory of a frame that nothing has written since its function was entered is not followed to
    /// whoever used that part of the stack before.
    pub frames_begin_empty: bool,
    /// Code (by address) that is not the program's own. The calls that led there are looked for,
    /// also where that means to go further back than the values do.
    pub foreign: Option<&'a dyn Fn(u64) -> bool>,
}

/// Restores that turned out not to be any are remembered, and the walk begun anew; so often.
const MOST_ATTEMPTS: usize = 32;

impl<'a> Question<'a> {
    /// Everything about some values at a moment, with the usual limits.
    #[must_use]
    pub fn new(thread: u32, moment: StepCount, wants: Wants, follow: Follow) -> Self {
        Self {
            thread,
            moment,
            wants,
            follow,
            control: None,
            from: StepCount(0),
            to: StepCount::NEVER,
            within: None,
            nodes: 100_000,
            depth: u32::MAX,
            prune_memory: Vec::new(),
            prune_parts: Parts::NONE,
            threads: Vec::new(),
            bypass: true,
            constants: Vec::new(),
            bookkeepers: None,
            frames_begin_empty: false,
            foreign: None,
        }
    }

    /// Goes back and finds out.
    #[must_use]
    pub fn answer(&self, trace: &'a Trace) -> Slice {
        let mut not_restores = trace.not_restores();
        for attempt in 0.. {
            let bypass = self.bypass && attempt < MOST_ATTEMPTS;
            let mut walk = Walk::new(trace, self, bypass, &not_restores);
            walk.run();
            match walk.finish() {
                Ok(slice) => return slice,
                Err(found) => {
                    trace.note_not_restores(&found);
                    not_restores.extend(found);
                }
            }
        }
        unreachable!("without bypassing there is nothing to find")
    }

    /// Goes forward and finds out what was made from what is wanted; also as the set of moments.
    #[must_use]
    pub fn forward(&self, trace: &Trace) -> (Slice, Members) {
        Forward::new(trace, self).run()
    }

    /// What the address of a read is to whoever reads there.
    pub(super) fn address_kind(&self, entry: bool, address: Option<u64>) -> Kind {
        let inside = |address: u64| {
            let behind = self.constants.partition_point(|(from, _)| *from <= address);
            let last = behind.checked_sub(1).map(|last| self.constants[last]);
            last.is_some_and(|(from, bytes)| address - from < bytes)
        };
        if entry && address.is_some_and(inside) { Kind::Value } else { Kind::Address }
    }

    /// Those of up to 64 bytes that are not pruned.
    pub(super) fn unpruned(&self, address: u64, which: u64) -> u64 {
        let inside = |byte: u64| {
            self.prune_memory.iter().any(|(from, count)| byte.wrapping_sub(*from) < *count)
        };
        if self.prune_memory.is_empty() {
            return which;
        }
        let pruned = (0..64).filter(|bit| inside(address.wrapping_add(*bit)));
        pruned.fold(which, |which, bit| which & !(1 << bit))
    }
}
