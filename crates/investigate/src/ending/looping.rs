//! A loop that does not end: which call it is in, since when, what its condition looked at last, and the
//! statements that made that so.
//!
//! Nothing of the run is followed but its last moments, in which the loop repeats itself, and the stretch
//! before the loop was entered: that is where whatever the loop only reads was written.

use crate::case::Case;
use crate::error::fault_or_input;
use crate::scene::{At, registers_of};
use crate::slicing::{Execution, windows};
use crate::threads::Threads;
use analyze::dependence::Trace;
use analyze::dependence::control::Control;
use analyze::semantics::{Flow, Parts, Uses};
use analyze::slice::ending::Asked;
use analyze::slice::explain::{Explanation, explain};
use analyze::slice::view::own_place;
use analyze::slice::{Follow, Node, Question, Slice, View, Wants, What};
use base::StepCount;
use base::{Address, Place, Tick};
use events::Consumer;
use replay::{Instant, StoppedProcess, Timeline};
use serde::Serialize;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use symbols::{Program, Stack};

/// A call that has been active for so many ticks is one that loops.
const PERSISTS: u64 = 20_000_000;
/// Ticks that are followed of the loop.
const TAIL: u64 = 50_000;
/// Ticks that are followed of what came before it.
const PREFIX: u64 = 3_000_000;
/// Frames looked at.
const FRAMES: usize = 256;
/// Pieces of memory whose writers are looked for.
const MOST_PIECES: usize = 64;
/// Moments gone to until it is known when the call was made.
const MOST_SEEKS: usize = 48;

/// How the values change that the loop's condition hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Nothing that it reads is written in the loop.
    Nothing,
    /// It goes round in memory that is not written in the loop.
    Round,
    /// They change, but never so that the loop ends.
    Values,
    /// Nothing in the loop decides whether it ends.
    Undecided,
}

/// A loop that does not end.
pub struct Looping {
    /// The call that it is in, at the line where the program was interrupted.
    pub place: Place,
    /// When it was entered, if that is known.
    pub since: Option<Tick>,
    /// How its condition changes.
    pub change: Change,
    /// What the condition hangs on in the loop, and who wrote what it reads.
    pub explanation: Explanation,
    /// How many of the statements are in the loop; the others came before it.
    pub in_loop: usize,
    /// The last moments of the run.
    pub execution: Execution,
    /// What was asked.
    pub asked: Asked,
}

/// What tells a frame from others.
type Frame = (Address, Option<String>);

impl Looping {
    /// The loop that a process was in where it was ended; nothing if no code of its own was active.
    pub fn of(
        case: &Case,
        process: u32,
        line: &mut Timeline,
        end: &StoppedProcess,
    ) -> anyhow::Result<Option<Self>> {
        let program = case.program(&end.at.modules)?;
        let threads = Threads::of(case.recording(), process);
        let last = Instant { time: end.at.time, pc: None };
        let before = last.time.saturating_sub(PERSISTS.min(last.time / 4));
        let earlier = line.seek(Instant { time: before, pc: None }).map_err(fault_or_input)?;
        let (stack, old) = (unwound(&program, end), unwound(&program, &earlier));
        let persisting: Vec<Frame> = frames(&program, &old);
        let own = |index: &usize| own_place(&program, stack.frames[*index].code().0).is_some();
        let stays = |index: &usize| {
            frame(&program, &stack, *index).is_some_and(|frame| persisting.contains(&frame))
        };
        let mut all = 0..stack.frames.len();
        let found = all.clone().filter(own).find(stays).or_else(|| all.find(own));
        let Some(index) = found else { return Ok(None) };
        let Some(place) = own_place(&program, stack.frames[index].code().0) else {
            return Ok(None);
        };
        let tail = observe(line, last.time.saturating_sub(TAIL), None)?;
        let wanted = frame(&program, &stack, index);
        let since = match wanted.filter(|_| threads.count() == 1) {
            Some(wanted) => since(line, &program, &wanted, &executed(&tail), before)?,
            None => None,
        };
        let Some(asked) = question(&tail, &stack, index, end) else { return Ok(None) };
        let control = Control::of(&tail, &program);
        let mut explanation = explain(&tail, &program, &control, std::slice::from_ref(&asked));
        let data = answer(&tail, &control, &asked, Follow::Data);
        let mut change = change(&tail, &data);
        if explanation.view.statements.is_empty() {
            // Nothing decides whether it goes on: all of it is shown.
            explanation.view = all_of(&tail, &program, asked.thread);
            change = Change::Undecided;
        }
        let in_loop = explanation.view.statements.len();
        // What a loop hands on is what it goes round with.
        explanation.view.statements.iter_mut().for_each(|statement| statement.hands_on = false);
        if let Some(since) = since {
            let from = since.saturating_sub(PREFIX);
            let prefix = observe(line, from, Some(since))?;
            add(&mut explanation.view, writers(&prefix, &program, &data, asked.thread));
        }
        let outcome = None;
        let (process, sight) = (Some(process), None);
        let execution =
            Execution { trace: tail, program, outcome, observed: None, process, threads, sight };
        execution.number_threads(&mut explanation.view);
        let since = since.map(Tick);
        Ok(Some(Self { place, since, change, explanation, in_loop, execution, asked }))
    }
}

fn unwound(program: &Program, standing: &StoppedProcess) -> Stack {
    program.unwind_at_most(&registers_of(&standing.at.thread), &At(standing), FRAMES)
}

fn frame(program: &Program, stack: &Stack, index: usize) -> Option<Frame> {
    let frame = &stack.frames[index];
    let symbol = program.symbol_at(frame.code()).map(|(name, _)| name);
    Some((frame.cfa?, symbol))
}

fn frames(program: &Program, stack: &Stack) -> Vec<Frame> {
    (0..stack.frames.len()).filter_map(|index| frame(program, stack, index)).collect()
}

/// The instructions that the loop executes.
fn executed(tail: &Trace) -> HashSet<u64> {
    tail.blocks.statics.iter().map(|known| known.pc).collect()
}

/// The first tick at which a call is in the loop that it still is in at a later one.
fn since(
    line: &mut Timeline,
    program: &Program,
    wanted: &Frame,
    looping: &HashSet<u64>,
    later: u64,
) -> anyhow::Result<Option<u64>> {
    let mut active = |time: u64| -> anyhow::Result<bool> {
        let standing = line.seek(Instant { time, pc: None }).map_err(fault_or_input)?;
        let stack = unwound(program, &standing);
        let index = (0..stack.frames.len())
            .find(|index| frame(program, &stack, *index).as_ref() == Some(wanted));
        // Of an outer call the instruction behind the call is known.
        Ok(index.is_some_and(|index| {
            let pc = stack.frames[index].pc.0;
            looping.contains(&pc)
                || index > 0 && looping.iter().any(|one| (1..8).contains(&(pc.wrapping_sub(*one))))
        }))
    };
    if !active(later)? {
        return Ok(None);
    }
    let (mut without, mut with) = (0, later);
    for _ in 0..MOST_SEEKS {
        if with - without <= 1 {
            break;
        }
        let middle = without + (with - without) / 2;
        if active(middle)? {
            with = middle;
        } else {
            without = middle;
        }
    }
    Ok(Some(with))
}

/// A stretch of the run as a trace.
fn observe(line: &mut Timeline, from: u64, to: Option<u64>) -> anyhow::Result<Trace> {
    let start = (from > 0).then_some(Instant { time: from, pc: None });
    let to = to.map(|time| Instant { time, pc: None });
    let mut trace = Trace::default();
    trace.is_tail = start.is_some();
    let begins = if from > 0 { from } else { line.begin().map_err(fault_or_input)?.at.time };
    trace.begin_at(Tick(begins));
    let trace = Arc::new(Mutex::new(trace));
    let consumer = Box::new(Feeding(trace.clone()));
    line.observe(start, to, windows::plan(), consumer).map_err(fault_or_input)?;
    let mut trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
    trace.end_window();
    Ok(std::mem::take(&mut *trace))
}

/// Hands a stream on to a trace.
struct Feeding(Arc<Mutex<Trace>>);

impl Consumer for Feeding {
    fn records(&mut self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).records(bytes);
    }
}

/// Why does the loop go on where it was interrupted?
fn question(trace: &Trace, stack: &Stack, index: usize, end: &StoppedProcess) -> Option<Asked> {
    let pc = match index {
        0 => {
            trace
                .last_executed(Some(end.at.thread.number as u32), StepCount(trace.len()))?
                .instruction
        }
        _ => {
            let call = trace.call_before(stack.frames[index].pc.0)?;
            return Some(asked(end, StepCount(trace.len()), call));
        }
    };
    Some(asked(end, StepCount(trace.len()), trace.blocks.statics[pc as usize].pc))
}

fn asked(end: &StoppedProcess, moment: StepCount, pc: u64) -> Asked {
    Asked {
        thread: end.at.thread.number as u32,
        moment,
        wants: Wants { control: Some(pc), ..Wants::default() },
        words: "what the loop's condition looked at".into(),
        pc: Some(pc),
    }
}

fn answer(trace: &Trace, control: &Control, asked: &Asked, follow: Follow) -> Slice {
    let mut question = asked.question(follow);
    question.control = Some(control);
    question.answer(trace)
}

/// The statements that the last moments consist of.
fn all_of(tail: &Trace, program: &Program, thread: u32) -> View {
    const MOST: usize = 40;
    let mut slice = Slice::default();
    slice.frames.push(analyze::slice::graph::Frame::default());
    let mut at = StepCount(tail.len());
    while let Some(executed) =
        tail.last_executed(Some(thread), at).filter(|_| slice.nodes.len() < MOST)
    {
        let position = tail.position(executed.moment);
        slice.nodes.push(Node {
            what: What::Executed,
            instruction: Some(executed.instruction),
            thread,
            moment: executed.moment,
            tick: position.map(|position| position.tick),
            instance: -1,
            frame: 0,
            depth: 0,
        });
        at = executed.moment;
    }
    let mut view = analyze::slice::view::Viewer::new(tail, program).view(&slice);
    view.statements.retain(|statement| statement.own);
    view.statements.iter_mut().for_each(|statement| statement.hands_on = false);
    view
}

/// How the values change that a condition hangs on: what it reads, and what leads to that.
fn change(trace: &Trace, data: &Slice) -> Change {
    /// Loading, comparing and branching takes no more.
    const ONE_LOOK: u64 = 12;
    let makes = |instruction: u32| {
        let general = (0..16).fold(Parts::NONE, |all, number| all | Parts::general(number, 0, 8));
        trace.blocks.statics[instruction as usize].meaning.flows.iter().any(|flow| match flow {
            Flow::Copy { .. } => false,
            Flow::Make { parts, write, uses, .. } => {
                *uses != Uses::default() && (write.is_some() || parts.without(&general) != *parts)
            }
        })
    };
    if data.executions() <= ONE_LOOK {
        return Change::Nothing;
    }
    match data.counts.keys().any(|(_, instruction)| makes(*instruction)) {
        true => Change::Values,
        false => Change::Round,
    }
}

/// Who wrote what the loop only reads, the latest first.
fn writers(prefix: &Trace, program: &Program, data: &Slice, thread: u32) -> View {
    let memory: Vec<(u64, u64)> = data.before.iter().take(MOST_PIECES).copied().collect();
    let parts = data.registers_before.get(&thread).copied().unwrap_or(Parts::NONE);
    let wants = Wants { memory, parts, ..Wants::default() };
    let question = Question::new(thread, StepCount(prefix.len()), wants, Follow::Thin);
    let foreign = |pc: u64| own_place(program, pc).is_none();
    let question = Question { foreign: Some(&foreign), ..question };
    let answer = question.answer(prefix);
    analyze::slice::view::Viewer::new(prefix, program).view(&answer)
}

/// Adds the program's own statements of another view behind those that are there.
fn add(view: &mut View, other: View) {
    for statement in other.statements.into_iter().filter(|statement| statement.own) {
        let known = view.statements.iter().any(|known| {
            (&known.place.file, known.place.line) == (&statement.place.file, statement.place.line)
        });
        if !known {
            view.statements.push(statement);
        }
    }
}
