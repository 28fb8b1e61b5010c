//! Saves a slice as a recording of its own, to be stepped through.

use super::execution::Execution;
use crate::case::Case;
use crate::error::of_recording;
use analyze::slice::ending::Asked;
use analyze::slice::view::has_source;
use analyze::slice::{Slice, What};
use anyhow::{Context, bail};
use replay::slices::{self, Kept, SaveError, Saved};
use std::collections::HashMap;
use std::path::Path;

/// Saves a slice of a process of a case.
pub fn save(
    case: &Case,
    execution: &Execution,
    (asked, answer): (&Asked, &Slice),
    to: &Path,
    force: bool,
) -> anyhow::Result<Saved> {
    let process = execution.process.context("saved events cannot be stepped through")?;
    let mut line = case.timeline(process)?;
    let kept = kept(execution, asked, answer);
    match slices::save(case.session(), &mut line, kept, to, force) {
        Ok(saved) => Ok(saved),
        Err(SaveError::Nothing) => bail!(
            "no statement of the program itself is in the slice, so there is nothing to step \
                 through; try another --value or --kind full"
        ),
        Err(SaveError::Record(error)) => Err(of_recording(to, error)),
    }
}

/// The executions of a slice that are of the program's own statements; of a program without any
/// source, all.
fn kept(execution: &Execution, asked: &Asked, answer: &Slice) -> Kept {
    let trace = &execution.trace;
    let pc = |instruction: u32| trace.blocks.statics[instruction as usize].pc;
    let executed = answer.nodes.iter().filter(|node| node.what == What::Executed);
    let executed = executed.filter_map(|node| Some((node.moment.0, pc(node.instruction?))));
    let all: Vec<(u64, u64)> = executed.collect();
    let any = all.iter().any(|(_, pc)| has_source(&execution.program, *pc));
    let mut lines: HashMap<(String, u32), u32> = HashMap::new();
    let mut statement = |pc: u64| {
        if !any {
            return Some(pc as u32);
        }
        let line = execution.program.line_at(base::Address(pc))?.line;
        let next = lines.len() as u32;
        let own = has_source(&execution.program, pc);
        own.then(|| *lines.entry((line.file, line.line)).or_insert(next))
    };
    let statics = trace.blocks.statics.iter();
    let statements = statics.filter_map(|known| Some((known.pc, statement(known.pc)?))).collect();
    let mut moments: Vec<u64> = all.into_iter().map(|(moment, _)| moment).collect();
    moments.sort_unstable();
    moments.dedup();
    // A slice that goes forward ends with what came last.
    let until = asked.moment.0.max(moments.last().map_or(0, |last| last + 1));
    Kept { moments, statements, until, from: None, about: asked.words.clone() }
}
