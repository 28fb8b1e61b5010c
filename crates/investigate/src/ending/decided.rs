//! Who decided that a program ends: the calls that are active at a moment, which of them are the program's
//! own, and the innermost decision that led there.
//!
//! `exit`, `abort`, `throw` and `panic` are mostly called in functions that do nothing else (`die`): nothing
//! in such a function decides. So the question goes outwards, from call to call, until a branch is found on
//! which the call depends. Functions of libraries that only end the program are passed by; those that are
//! part of the program's own file (templates of C++, Rust's standard library) may have decided.

use crate::slicing::Execution;
use analyze::dependence::control::Control;
use analyze::dependence::query::Nth;
use analyze::slice::ending::Asked;
use analyze::slice::graph::{Because, Slice};
use analyze::slice::view::{own_frames, own_place};
use analyze::slice::{Follow, Wants};
use base::StepCount;
use base::{Address, Place, PlaceName};
use std::ops::ControlFlow;

/// Active calls that are looked at.
const MOST_CALLS: usize = 200;
/// Calls from which a decision is looked for.
const MOST_ASKED: usize = 12;
/// Executions kept to see whether there is a decision.
const NODES: usize = 64;

/// An active call.
#[derive(Clone, Debug)]
pub struct Active {
    /// The call instruction.
    pub pc: u64,
    /// When it was executed.
    pub moment: StepCount,
    /// The function that it is in.
    pub function: String,
    /// Where that is, if it is the program's own code; of inlined calls the innermost first.
    pub own: Vec<Place>,
    /// Whether it is in a file of the system's.
    pub of_system: bool,
}

/// What the end is put down to.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The thread.
    pub thread: u32,
    /// The active calls, innermost first.
    pub calls: Vec<Active>,
    /// What to ask, the innermost call first.
    pub asked: Vec<Asked>,
}

impl Decided {
    /// The innermost call of the program's own.
    pub fn own(&self) -> Option<&Active> {
        self.calls.iter().find(|call| !call.own.is_empty())
    }
}

/// The calls of a thread that are active at a moment, innermost first.
pub fn active(execution: &Execution, thread: u32, at: StepCount) -> Vec<Active> {
    let (trace, program) = (&execution.trace, &execution.program);
    let mut calls = Vec::new();
    trace.active_calls(thread, at, |call| {
        let pc = trace.blocks.statics[call.instruction as usize].pc;
        let known = program.symbolise(Address(pc));
        let name = known.frames.first().and_then(|frame| frame.function.clone());
        let path = known.module.as_ref().map(|path| path.display().to_string());
        calls.push(Active {
            pc,
            moment: call.moment,
            function: name.or(known.symbol.map(|(name, _)| name)).unwrap_or_default(),
            own: own_frames(program, pc),
            of_system: path.is_none_or(|path| base::is_system_file(&path)),
        });
        if calls.len() < MOST_CALLS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    calls
}

/// Who decided what happens at a moment. Nothing if no code of the program's own is active there: it has
/// returned from `main`.
pub fn decided(
    execution: &Execution,
    control: &Control,
    thread: u32,
    at: StepCount,
    words: &str,
) -> Option<Decided> {
    let calls = active(execution, thread, at);
    calls.iter().find(|call| !call.own.is_empty())?;
    let mut asked = Vec::new();
    let deciding = calls.iter().filter(|call| !call.own.is_empty() || may_decide(call));
    for call in deciding.take(MOST_ASKED) {
        let question = Asked {
            thread,
            moment: call.moment,
            wants: Wants { control: Some(call.pc), ..Wants::default() },
            words: words.to_owned(),
            pc: Some(call.pc),
        };
        let found = has_decision(execution, control, &question);
        if found || !call.own.is_empty() {
            asked.push(question);
        }
        if found {
            break;
        }
    }
    Some(Decided { thread, calls, asked })
}

/// Whether a function of a library that is part of the program's own file may have decided: not those that
/// are there to fail.
fn may_decide(call: &Active) -> bool {
    const FAILING: [&str; 9] = [
        "panic",
        "_fail",
        "fail_",
        "terminate",
        "throw",
        "abort",
        "exit",
        "raise",
        "handle_alloc_error",
    ];
    const STARTING: [&str; 6] = [
        "std::rt::",
        "std::sys::",
        "std::thread::",
        "core::ops::function::",
        "_start",
        "call_once",
    ];
    let name = call.function.as_str();
    !call.of_system
        && !name.is_empty()
        && !FAILING.iter().any(|part| name.contains(part))
        && !STARTING.iter().any(|part| name.contains(part))
}

/// Whether a branch of the call's own function decided about it.
fn has_decision(execution: &Execution, control: &Control, asked: &Asked) -> bool {
    let mut question = asked.question(Follow::Thin);
    question.control = Some(control);
    question.nodes = NODES;
    decisions(&question.answer(&execution.trace))
}

fn decisions(slice: &Slice) -> bool {
    // The question is the first node.
    slice.edges.iter().any(|edge| edge.user == 0 && edge.because == Because::Branch)
}

/// Where a Rust panic begins: before the hook, which may go through all debug information to print a backtrace.
/// The second name is that of older standard libraries.
const RUST_PANICS: [&str; 2] = ["panic_with_hook", "rust_panic_with_hook"];
/// Where the unwinding begins, behind the hook.
const RUST_UNWINDING: &str = "rust_panic";
/// The same of Go: a panic, and what its runtime gives up for.
const GO_PANICS: [&str; 2] = ["runtime.gopanic", "runtime.throw"];

/// The last panic of a Rust program, or the one before it: thread and moment. Nothing if there was none in the trace,
/// or if the program does not have the names of its functions.
pub fn last_panic(execution: &Execution, before_last: bool) -> Option<(u32, StepCount)> {
    let mut pcs: Vec<u64> = RUST_PANICS.iter().flat_map(|name| entries(execution, name)).collect();
    if pcs.is_empty() {
        pcs = entries(execution, RUST_UNWINDING);
    }
    let find = |nth| execution.trace.find(&pcs, nth, None).ok();
    let before = before_last.then(|| find(Nth::FromEnd(2))).flatten();
    before.or_else(|| find(Nth::FromEnd(1))).map(|executed| (executed.thread, executed.moment))
}

/// The last panic of a Go program.
pub fn last_go_panic(execution: &Execution) -> Option<(u32, StepCount)> {
    let pcs: Vec<u64> = GO_PANICS.iter().flat_map(|name| entries(execution, name)).collect();
    let found = execution.trace.find(&pcs, Nth::FromEnd(1), None).ok()?;
    Some((found.thread, found.moment))
}

fn entries(execution: &Execution, function: &str) -> Vec<u64> {
    let places = execution.program.resolve(&PlaceName::Function(function.to_owned()));
    places.unwrap_or_default().iter().map(|location| location.address.0).collect()
}

/// The last code of the program's own that a thread executed before a moment.
pub fn last_own(execution: &Execution, thread: u32, before: StepCount) -> Option<(u64, StepCount)> {
    use analyze::dependence::trace::Item;
    let trace = &execution.trace;
    let mut known = std::collections::HashMap::new();
    let mut back = trace.backward_from(before);
    while let Some((when, item)) = back.previous() {
        let Item::Path { exit, .. } = item else { continue };
        if when.thread != thread || when.moment >= before {
            continue;
        }
        let exit = &trace.blocks.exits[exit as usize];
        let block = &trace.blocks.blocks[exit.block as usize];
        let room = (before.0 - when.moment.0).min(exit.executed.into()) as usize;
        for index in (0..room).rev() {
            let pc = trace.blocks.statics[block.instructions[index] as usize].pc;
            let own =
                known.entry(pc).or_insert_with(|| own_place(&execution.program, pc).is_some());
            if *own {
                return Some((pc, StepCount(when.moment.0 + index as u64)));
            }
        }
    }
    None
}
