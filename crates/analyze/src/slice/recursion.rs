//! A recursion that does not end: which calls come again and again, and what one round hands on to
//! the next as it is.

use super::graph::What;
use super::question::{Follow, Question, Wants};
use crate::dependence::active::ActiveCall;
use crate::dependence::trace::Trace;
use crate::semantics::{Flow, Meaning, Parts};
use base::StepCount;
use rustc_hash::FxHashMap;
use std::ops::ControlFlow;

/// Fewer rounds are no recursion to speak of.
const FEWEST: u64 = 16;

/// Calls that come again and again.
#[derive(Clone, Debug)]
pub struct Recursion {
    /// All calls that are active.
    pub active: u64,
    /// How often the call that comes most often is among them.
    pub rounds: u64,
    /// The calls of the last round, innermost first; the first of them is the one that comes most
    /// often.
    pub round: Vec<ActiveCall>,
    /// That call in the round before.
    pub before: ActiveCall,
    /// When the function was entered that made it.
    pub entered: StepCount,
}

/// The recursion that is active at a moment, if there is one.
#[must_use]
pub fn find(trace: &Trace, thread: u32, at: StepCount) -> Option<Recursion> {
    let mut calls: Vec<ActiveCall> = Vec::new();
    trace.active_calls(thread, at, |call| {
        calls.push(call);
        ControlFlow::Continue(())
    });
    let mut times: FxHashMap<u32, u64> = FxHashMap::default();
    for call in &calls {
        *times.entry(call.instruction).or_default() += 1;
    }
    let rounds = times.values().copied().max().filter(|rounds| *rounds >= FEWEST)?;
    let often = |call: &ActiveCall| times[&call.instruction] == rounds;
    let last = calls.iter().position(often)?;
    let again = |call: &ActiveCall| call.instruction == calls[last].instruction;
    let length = calls[last + 1..].iter().position(again)? + 1;
    Some(Recursion {
        active: calls.len() as u64,
        rounds,
        round: calls[last..last + length].to_vec(),
        before: calls[last + length],
        entered: calls
            .get(last + length + 1)
            .map_or(StepCount(0), |call| StepCount(call.moment.0 + 1)),
    })
}

/// A value at a moment.
pub type Held = (StepCount, Wants);

/// Whether two values are the same because both were copied, byte for byte, from what was there
/// at an earlier moment.
#[must_use]
pub fn are_copies(trace: &Trace, thread: u32, values: [Held; 2], since: StepCount) -> bool {
    let [one, other] = values.map(|value| origin(trace, thread, value, since));
    one.is_some() && one == other
}

/// Where a value was before a moment, if it was only copied since: registers, bytes of memory.
fn origin(
    trace: &Trace,
    thread: u32,
    (moment, wants): Held,
    since: StepCount,
) -> Option<(Parts, Vec<u64>)> {
    let mut question = Question::new(thread, moment, wants, Follow::Thin);
    question.from = since;
    let slice = question.answer(trace);
    let copied = slice.nodes.iter().all(|node| match (node.what, node.instruction) {
        (What::Question, _) => true,
        (What::Executed, Some(id)) => copies(&trace.blocks.statics[id as usize].meaning),
        _ => false,
    });
    let registers = slice.registers_before.get(&thread).copied().unwrap_or(Parts::NONE);
    let bytes = slice.before.iter().flat_map(|(from, count)| *from..from + count);
    (copied && !slice.cut).then(|| (lower(registers), bytes.collect()))
}

/// Whether an instruction only copies.
fn copies(meaning: &Meaning) -> bool {
    meaning.flows.iter().all(|flow| match flow {
        Flow::Copy { .. } => true,
        Flow::Make { parts, write, .. } => write.is_none() && lower(*parts).is_empty(),
    })
}

/// Without the upper halves of general registers, which every move of a lower half clears.
fn lower(parts: Parts) -> Parts {
    let [general, low, high, single] = parts.0;
    Parts([general & 0x7777_7777_7777_7777, low, high, single])
}
