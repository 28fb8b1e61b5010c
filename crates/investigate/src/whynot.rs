//! Why a place was not executed: the last decision that could have led there and went the other way.
//!
//! A place hangs on the branches that decide about it, by the graph of its function's control flow; a
//! function that was never called hangs on its calls. What was not executed itself hangs on what decides
//! about it in turn, so the search goes up from the place until it comes to something that was executed.

use crate::case::Case;
use crate::diagnosis::{Shown, Wanted, shown};
use crate::moments::addresses;
use crate::sight::Sight;
use crate::slicing::Execution;
use analyze::dependence::control::Control;
use analyze::dependence::query::Executed;
use analyze::semantics::{Form, Side};
use analyze::slice::Wants;
use analyze::slice::ending::Asked;
use analyze::slice::explain::Explanation;
use anyhow::{bail, ensure};
use base::StepCount;
use base::{Address, Nth, Place, PlaceName, Position};
use std::collections::HashSet;

/// Decisions about decisions that are gone through.
const MOST_LEVELS: usize = 64;

/// Why a place was not executed.
pub struct NotExecuted {
    /// The decision.
    pub decision: Place,
    /// When it was made.
    pub position: Option<Position>,
    /// Where the thread went instead.
    pub went: Option<Place>,
    /// The calls that would have led from there to the place, the nearest to the place first.
    pub calls: Vec<Place>,
    /// What happened.
    pub execution: Execution,
    /// The chain back from the values that the decision looked at.
    pub explanation: Explanation,
    /// Its statements that are shown.
    pub shown: Vec<Shown>,
}

impl NotExecuted {
    /// Finds out about a place, in a process of a case.
    pub fn of(
        case: &Case,
        process: u32,
        wanted: Wanted<'_>,
        name: &PlaceName,
    ) -> anyhow::Result<Self> {
        let execution = Execution::of(case, process, wanted.memory)?;
        let (trace, program) = (&execution.trace, &execution.program);
        let pcs = addresses(program, name)?;
        if let Ok(last) = trace.find(&pcs, Nth::FromEnd(1), None) {
            let at = trace.position(last.moment);
            let at = at.map_or_else(String::new, |at| format!(", the last time at {}", at.tick));
            bail!("{name} was executed{at}; whydunit slice --at {name} asks about that");
        }
        let control = Control::with_functions(trace, program, &entries(&execution, &pcs));
        let found = search(&execution, &control, &pcs);
        let Some((executed, calls)) = found else {
            let function = pcs.first().and_then(|pc| program.function_at(Address(*pc)));
            let function = function.map_or_else(|| name.to_string(), |function| function.name);
            bail!(
                "no decision that was made leads to {name}: no call of {function} was found in the code that \
                 was executed. If it is called through a pointer, ask about that pointer with \
                 whydunit slice --value"
            );
        };
        let known = &trace.blocks.statics[executed.instruction as usize];
        let decision = program.symbolise(Address(known.pc)).place();
        ensure!(
            matches!(known.meaning.form, Form::Branch(_) | Form::IndirectJump | Form::IndirectCall),
            "{name} hangs on {decision}, which was executed and did not come that far: something that it \
             called ended the program or never returned; whydunit why tells the end"
        );
        let next = trace.next_executed(executed.thread, StepCount(executed.moment.0 + 1));
        let place = |id: u32| {
            let pc = trace.blocks.statics[id as usize].pc;
            program.symbolise(Address(pc)).place()
        };
        let went = next.map(|next| place(next.instruction));
        let calls = calls.iter().map(|pc| program.symbolise(Address(*pc)).place()).collect();
        let position = trace.position(executed.moment);
        let explanation = execution.explained(&control, &[asked(&execution, &executed)])?;
        let mut sight = Sight::of(case, process, trace.tick().0)?;
        let shown = shown(&execution, &mut sight, &explanation.view.statements, wanted);
        Ok(Self { decision, position, went, calls, execution, explanation, shown })
    }
}

/// The functions of the files that hold a place: code that was not executed is found from there on.
fn entries(execution: &Execution, pcs: &[u64]) -> Vec<u64> {
    let program = &execution.program;
    let modules: HashSet<usize> = (0..program.modules().len())
        .filter(|module| {
            let range = program.modules()[*module].loaded().range;
            pcs.iter().any(|pc| range.contains(Address(*pc)))
        })
        .collect();
    let functions = modules.into_iter().flat_map(|module| program.functions(module));
    functions.map(|function| function.entry.0).collect()
}

/// Goes up from places that were not executed to the last decision about them that was made; with the calls
/// on the way.
fn search(execution: &Execution, control: &Control, pcs: &[u64]) -> Option<(Executed, Vec<u64>)> {
    // What hangs on what: a place, and the calls between it and the place asked about.
    let mut level: Vec<(u64, Vec<u64>)> = pcs.iter().map(|pc| (*pc, Vec::new())).collect();
    let mut seen: HashSet<u64> = pcs.iter().copied().collect();
    for _ in 0..MOST_LEVELS {
        let mut next: Vec<(u64, Vec<u64>)> = Vec::new();
        for (pc, calls) in &level {
            let deciders = control.node(*pc).map_or(&[][..], |node| control.parents(node));
            next.extend(deciders.iter().map(|pc| (*pc, calls.clone())));
            if deciders.is_empty() {
                let function = execution.program.function_at(Address(*pc))?;
                for call in control.calls_of(function.entry.0) {
                    let mut calls = calls.clone();
                    calls.push(*call);
                    next.push((*call, calls));
                }
            }
        }
        next.retain(|(pc, _)| seen.insert(*pc));
        let all: Vec<u64> = next.iter().map(|(pc, _)| *pc).collect();
        if all.is_empty() {
            return None;
        }
        if let Ok(executed) = execution.trace.find(&all, Nth::FromEnd(1), None) {
            let pc = execution.trace.blocks.statics[executed.instruction as usize].pc;
            let way = next.into_iter().find(|(at, _)| *at == pc);
            return Some((executed, way.map(|(_, calls)| calls).unwrap_or_default()));
        }
        level = next;
    }
    None
}

/// The values that a decision looked at.
fn asked(execution: &Execution, executed: &Executed) -> Asked {
    let known = &execution.trace.blocks.statics[executed.instruction as usize];
    let mut wants = Wants::default();
    if let Some(decides) = &known.meaning.decides {
        wants.parts = decides.values;
        for read in &decides.reads {
            if let Side::Memory(slot) = read.side
                && let Some(Some(address)) = executed.addresses.get(usize::from(slot))
            {
                wants.memory.push((address + u64::from(read.from), read.bytes.into()));
            }
        }
    }
    Asked {
        thread: executed.thread,
        moment: executed.moment,
        wants,
        words: "the condition".into(),
        pc: Some(known.pc),
    }
}
