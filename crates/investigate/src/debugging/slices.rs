//! Slices in a debugger: numbered, with breakpoints on exactly the executions that are in them, and steps from one
//! of those to the next.

use super::points::{Point, Reason};
use super::{Debugger, Stop};
use crate::error::fault_or_input;
use crate::slicing::{Execution, Query, windows};
use analyze::slice::view::{Unfold, has_source};
use analyze::slice::{Slice, View};
use anyhow::{Context, ensure};
use base::{Address, Moment};
use replay::Instant;
use std::collections::BTreeSet;

/// A slice that has been asked for.
pub struct Numbered {
    /// Its number, from 1 on.
    pub id: u32,
    /// What it is about.
    pub words: String,
    /// How it was asked for, to ask again with something left out.
    pub query: Query,
    /// Its statements and what lies between them.
    pub view: View,
    /// Instructions that took part.
    pub executions: u64,
    /// Every execution of a statement in it: when it begins, and its statement, from 0 on.
    pub steps: Vec<(Instant, usize)>,
    /// Whether it stops at them.
    pub stops: bool,
}

impl Debugger<'_> {
    /// Asks for a slice. Its number.
    pub fn slice(&mut self, mut query: Query) -> anyhow::Result<u32> {
        (query.from, query.to) = match &self.recorded {
            Some((from, to)) => (Some(from.clone()), to.clone()),
            None => (query.from, query.to),
        };
        let numbered = self.ask(query)?;
        let id = numbered.id;
        self.slices.push(numbered);
        Ok(id)
    }

    fn ask(&mut self, query: Query) -> anyhow::Result<Numbered> {
        let (execution, asked, answer) =
            query.ask_case(self.case, self.process, windows::MEMORY, false)?;
        execution.complete()?;
        let view = execution.view(&answer, Unfold::Nothing);
        let steps = steps(&execution, &answer, &view);
        let (words, executions) = (asked.words, answer.executions());
        let id = self.slices.iter().map(|slice| slice.id).max().unwrap_or(0) + 1;
        Ok(Numbered { id, words, query, view, executions, steps, stops: false })
    }

    /// Only what happens between two moments is looked at by slices from now on; all of it again if there are none.
    pub fn record_between(&mut self, between: Option<(Moment, Option<Moment>)>) {
        self.recorded = between;
    }

    /// What slices look at, if not all.
    pub fn recorded_between(&self) -> Option<&(Moment, Option<Moment>)> {
        self.recorded.as_ref()
    }

    /// Takes everything out of a slice that comes from some values. Statements before and now.
    pub fn prune(&mut self, id: u32, values: &[String]) -> anyhow::Result<(usize, usize)> {
        let index = self.index_of(id)?;
        let mut query = self.slices[index].query.clone();
        query.prune.extend(values.iter().cloned());
        let pruned = self.ask(query)?;
        let before = self.slices[index].view.statements.len();
        let (now, stops) = (pruned.view.statements.len(), self.slices[index].stops);
        self.slices[index] = Numbered { id, ..pruned };
        if stops {
            self.stop_in_slice(id, None)?;
        }
        Ok((before, now))
    }

    /// The slices.
    pub fn slices(&self) -> &[Numbered] {
        &self.slices
    }

    /// Forgets a slice and its breakpoints.
    pub fn forget_slice(&mut self, id: u32) -> anyhow::Result<()> {
        let index = self.index_of(id)?;
        self.slices.remove(index);
        self.remove_points(|reason| matches!(reason, Reason::Slice { slice, .. } if *slice == id));
        Ok(())
    }

    /// Stops at all executions of some statements of a slice that are in it, of all if none are said. How many there are.
    pub fn stop_in_slice(
        &mut self,
        id: u32,
        statements: Option<&[usize]>,
    ) -> anyhow::Result<usize> {
        let index = self.index_of(id)?;
        let slice = &mut self.slices[index];
        if let Some(wrong) = statements
            .iter()
            .flat_map(|it| it.iter())
            .find(|number| **number == 0 || **number > slice.view.statements.len())
        {
            let all = slice.view.statements.len();
            anyhow::bail!("slice {id} has no statement {wrong}: it has {all}, from 1 on");
        }
        slice.stops = true;
        let wanted = |step: &&(Instant, usize)| {
            statements.is_none_or(|numbers| numbers.contains(&(step.1 + 1)))
        };
        let points: Vec<Point> = slice
            .steps
            .iter()
            .filter(wanted)
            .map(|(at, statement)| Point {
                at: *at,
                reason: Reason::Slice { slice: id, statement: statement + 1 },
            })
            .collect();
        let count = points.len();
        self.add_points(points);
        Ok(count)
    }

    /// Goes to the next execution in a slice, or to the one before.
    pub fn step_slice(&mut self, id: Option<u32>, back: bool) -> anyhow::Result<Stop> {
        let index = match id {
            Some(id) => self.index_of(id)?,
            None => self
                .slices
                .len()
                .checked_sub(1)
                .context("there is no slice; make one with `slice`")?,
        };
        let moments: BTreeSet<Instant> =
            self.slices[index].steps.iter().map(|(at, _)| *at).collect();
        self.leave_diversion();
        let next = if back { self.previous_of(&moments)? } else { self.next_of(&moments)? };
        let Some(next) = next else {
            return Ok(if back { Stop::Beginning } else { Stop::End(None) });
        };
        self.at = self.line.seek(next).map_err(fault_or_input)?;
        Ok(Stop::Moved)
    }

    /// The statement of a slice that is about to be executed, from 0 on, if it is one of its executions.
    pub fn statement_here(&self, id: u32) -> Option<usize> {
        let slice = self.slices.iter().find(|slice| slice.id == id)?;
        let here = self.at.instant();
        slice.steps.iter().find(|(at, _)| *at == here).map(|(_, statement)| *statement)
    }

    fn index_of(&self, id: u32) -> anyhow::Result<usize> {
        let found = self.slices.iter().position(|slice| slice.id == id);
        found.with_context(|| format!("there is no slice {id}; `info slices` lists them"))
    }

    /// The moment that the debugger stands at, as a question has it.
    pub fn moment(&self) -> Moment {
        if self.at.at.ended {
            return Moment::END;
        }
        let here = self.at.instant();
        let position = base::Position {
            tick: base::Tick(here.time),
            pc: Address(here.pc.unwrap_or_default()),
        };
        Moment { instant: base::moment::Instant::Position(position), thread: None }
    }

    /// What a statement that is about to be executed, or the end, depends on most nearly: a slice that is not kept.
    pub fn why_here(&mut self, depth: u32) -> anyhow::Result<(String, View)> {
        let at = self.moment();
        let mut query = Query::new(analyze::slice::Follow::Full);
        query.control = at != Moment::END;
        query.at = (at != Moment::END).then_some(at);
        query.depth = depth;
        let (execution, asked, answer) =
            query.ask_case(self.case, self.process, windows::MEMORY, false)?;
        execution.complete()?;
        ensure!(answer.executions() > 0, "nothing led here: it is the beginning");
        Ok((asked.words, execution.view(&answer, Unfold::Nothing)))
    }
}

/// The executions of statements in a slice. Instructions of one line in one frame, one behind the other, are one; code
/// without source is a part of the call that led there.
fn steps(execution: &Execution, answer: &Slice, view: &View) -> Vec<(Instant, usize)> {
    let program = &execution.program;
    let pc_of = |instruction: u32| execution.trace.blocks.statics[instruction as usize].pc;
    let statement_of = |pc: u64| {
        let place = program.symbolise(Address(pc)).place();
        let same = |own: &base::Place| {
            (&own.file, own.line, &own.function) == (&place.file, place.line, &place.function)
        };
        view.statements.iter().position(|statement| same(&statement.place))
    };
    let mut steps: Vec<(Instant, usize)> = Vec::new();
    let mut last: Option<(u32, u32, usize, BTreeSet<u32>)> = None;
    for node in answer.nodes.iter().rev() {
        let (Some(instruction), Some(tick)) = (node.instruction, node.tick) else { continue };
        let pc = pc_of(instruction);
        if !has_source(program, pc) {
            continue;
        }
        let Some(statement) = statement_of(pc) else { continue };
        if let Some((thread, frame, known, met)) = &mut last
            && (*thread, *frame, *known) == (node.thread, node.frame, statement)
            && met.insert(instruction)
        {
            continue;
        }
        last = Some((node.thread, node.frame, statement, BTreeSet::from([instruction])));
        steps.push((Instant { time: tick.0, pc: Some(pc) }, statement));
    }
    // Code without source counts at the call of the program's own that led there.
    let own_calls = answer.nodes.iter().filter_map(|node| {
        let instruction = node.instruction?;
        if has_source(program, pc_of(instruction)) {
            return None;
        }
        let mut frame = node.frame;
        loop {
            let (outer, call, _, moment) = answer.frames.get(frame as usize)?.caller?;
            let pc = pc_of(call);
            if has_source(program, pc) {
                return Some((moment, pc));
            }
            frame = outer;
        }
    });
    let calls: BTreeSet<(_, u64)> = own_calls.collect();
    for (moment, pc) in calls.into_iter().take(MOST_CALLS) {
        let Some(position) = execution.position(moment) else { continue };
        let at = Instant { time: position.tick.0, pc: Some(position.pc.0) };
        let known = steps.iter().any(|(known, _)| *known == at);
        if let (false, Some(statement)) = (known, statement_of(pc)) {
            steps.push((at, statement));
        }
    }
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// Calls of code without source whose moments are looked up.
const MOST_CALLS: usize = 2000;
