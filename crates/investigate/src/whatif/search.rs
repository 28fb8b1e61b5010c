//! The search for **critical decisions**: of the statements that led to a failure, those that decide something are
//! turned around, one at a time, each from just before it, and those are told with which the failure
//! goes away.

use super::places::once;
use super::{Answer, Ready, Verdict, WhatIf};
use crate::case::Case;
use crate::diagnosis::{Diagnosis, Wanted};
use crate::error::fault_or_input;
use crate::slicing::windows;
use analyze::slice::view::Statement;
use base::{Place, PlaceName};
use events::patch::Action;
use replay::Instant;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

/// What a search has found.
#[derive(Debug, Serialize)]
pub struct SearchResult {
    /// Decisions with which the failure goes away, nearest to it first.
    pub critical: Vec<Answer>,
    /// How many decisions were turned around.
    pub tried: usize,
    /// Statements for which the time was too short.
    pub untried: usize,
    /// Of those tried, how many failed in the same way, and how many ended otherwise or not in time.
    pub same: usize,
    /// See `same`.
    pub other: usize,
}

/// A decision of the failure's slice: the statement, and where it was executed last.
struct Decision {
    place: Place,
    instance: i64,
    at: Instant,
}

/// The share of the time that one diversion may take: one that never ends must not use up all.
const SHARE: u32 = 8;

/// Ticks between the first instruction of a statement and its decision, calls included.
const WITHIN: u64 = 1 << 20;

/// What the workers of a search share: decisions to come, and moments that were tried.
struct Work<'case> {
    whatif: WhatIf<'case>,
    decisions: std::iter::Enumerate<std::vec::IntoIter<Decision>>,
    tried: BTreeSet<Instant>,
}

/// Turns around the decisions that led to the failure of a process, within a time.
pub fn search(case: &Case, process: u32, budget: Duration) -> anyhow::Result<SearchResult> {
    let begun = std::time::Instant::now();
    let source = |_: &Statement| None;
    let wanted = Wanted::new(windows::MEMORY, &source);
    let decisions = decisions(&Diagnosis::of(case, process, wanted)?);
    let whatif = WhatIf::of(case, process)?;
    let known = whatif.known.clone();
    let decisions = decisions.into_iter().enumerate();
    let work = Mutex::new(Work { whatif, decisions, tried: BTreeSet::new() });
    let answers = Mutex::new(Vec::new());
    let left = || budget.saturating_sub(begun.elapsed());
    let workers = available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while !left().is_zero() {
                    let next = lock(&work).next();
                    let Some((number, ready)) = next else { return };
                    let time = left().min(budget / SHARE).max(Duration::from_millis(1));
                    // One whose runner has ended tells nothing.
                    if let Ok(answer) = known.run(ready, time) {
                        lock(&answers).push((number, answer));
                    }
                }
            });
        }
    });
    let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
    answers.sort_by_key(|(number, _)| *number);
    let untried = lock(&work).decisions.len();
    Ok(summed_up(untried, answers.into_iter().map(|(_, answer)| answer).collect()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn summed_up(untried: usize, answers: Vec<Answer>) -> SearchResult {
    let count = |verdict| answers.iter().filter(|answer| answer.verdict == verdict).count();
    let (same, other) = (count(Verdict::SameFailure), count(Verdict::OtherEnd));
    let tried = answers.len();
    let critical = answers.into_iter().filter(|answer| answer.verdict == Verdict::NoFailure);
    SearchResult { critical: critical.collect(), tried, untried, same, other }
}

/// The statements of a failure's slice, nearest first. Which of them decide something their code tells.
fn decisions(diagnosis: &Diagnosis) -> Vec<Decision> {
    let statements = diagnosis.explanation.view.statements.iter();
    let decision = |statement: &Statement| {
        let at = statement.position?;
        let at = Instant { time: at.tick.0, pc: Some(at.pc.0) };
        Some(Decision { place: statement.place.clone(), instance: statement.instance, at })
    };
    statements.filter(|statement| statement.own).filter_map(decision).collect()
}

impl Work<'_> {
    /// The next decision that has not been tried, ready to be turned around.
    fn next(&mut self) -> Option<(usize, Ready)> {
        loop {
            let (number, decision) = self.decisions.next()?;
            if let Ok(Some(ready)) = self.whatif.turned(&decision)
                && self.tried.insert(ready.standing.instant())
            {
                return Some((number, ready));
            }
        }
    }
}

impl WhatIf<'_> {
    /// A statement of the slice with its decision turned around; nothing if it decides nothing.
    fn turned(&mut self, decision: &Decision) -> anyhow::Result<Option<Ready>> {
        let Decision { place, instance, at } = decision;
        let (Some(file), Some(line)) = (place.file.clone(), place.line) else { return Ok(None) };
        let name = PlaceName::Line { file, line };
        let mut branches = Vec::new();
        let mut ranges = Vec::new();
        for location in self.known.program.resolve(&name)? {
            branches.extend(self.decisions(&location));
            ranges.extend(location.ranges);
        }
        if branches.is_empty() {
            return Ok(None);
        }
        let mut standing = self.line.seek(*at).map_err(fault_or_input)?;
        if !branches.contains(&standing.at.thread.pc) {
            let soon = Instant { time: at.time + WITHIN, pc: None };
            let wanted = (&branches[..], Some(standing.at.thread.number));
            self.line.go_on_to_hit(&mut standing, wanted, 1, Some(soon)).map_err(fault_or_input)?;
            if standing.at.hits == 0 {
                return Ok(None);
            }
        }
        let standing = self.last_decision(standing, &branches, &ranges)?;
        let words = format!("{name}#{instance} decides otherwise");
        Ok(Some(once(standing, Action::Flip, words)))
    }
}
