//! Why a program ended as it did: how it ended, what to ask about that, and the chain back to where the
//! wrong value was made.

use crate::case::Case;
use crate::crash::Crash;
use crate::slicing::Execution;
use crate::slicing::recursion::Endless;
use analyze::dependence::Moment;
use analyze::dependence::control::Control;
use analyze::slice::ending::Asked;
use analyze::slice::explain::{Explanation, explain};
use analyze::slice::{Follow, Slice};
use anyhow::Context;
use base::{Ending, ProcessNumber, When};

/// The diagnosis of one process.
pub struct Diagnosis {
    /// What happened.
    pub execution: Execution,
    /// How it ended, as a sentence.
    pub ended: String,
    /// The values where it crashed, in the program's own words, or at least the registers.
    pub values: Vec<(String, String)>,
    /// The recursion that filled its stack, if that was it.
    pub recursion: Option<Endless>,
    /// What was asked about the end, the best question first.
    pub asked: Vec<Asked>,
    /// The chain.
    pub explanation: Explanation,
}

impl Diagnosis {
    /// Explains how a process of a case ended; at most so many bytes of the run are kept.
    pub fn of(case: &Case, process: u32, memory: u64) -> anyhow::Result<Self> {
        let execution = Execution::of(case, process, memory)?;
        let recursion = Endless::of(&execution);
        let asked = match &recursion {
            Some(endless) => vec![endless.asked()],
            None => execution.asked_at_end(),
        };
        asked.first().context("the program executed nothing")?;
        let control = Control::of(&execution.trace, &execution.program);
        let mut explanation = explain(&execution.trace, &execution.program, &control, &asked);
        execution.number_threads(&mut explanation.view);
        execution.complete()?;
        let (ended, values) = (execution.ending(), values(&execution));
        Ok(Self { execution, ended, values, recursion, asked, explanation })
    }

    /// The best question.
    pub fn question(&self) -> &Asked {
        &self.asked[0]
    }

    /// The crash that it ended in, if it did, with its position.
    pub fn crash(&self) -> Option<Crash> {
        let mut crash = Crash::of(self.execution.crash()?);
        // The report of a replay has the runner's ids.
        let thread = self.execution.trace.last_thread()?;
        let end = self.execution.position(Moment(self.execution.trace.len()));
        crash.finding.when = end.zip(self.execution.process).map(|(position, process)| When {
            process: ProcessNumber(process),
            thread: self.execution.thread(thread, position.tick),
            position,
        });
        Some(crash)
    }

    /// The instruction that the end is put down to, if there is one.
    pub fn pc(&self) -> Option<u64> {
        self.asked.last().and_then(|asked| asked.pc)
    }

    /// Whether the program failed: a signal, an exit code other than 0, or an end that is not known.
    pub fn has_failed(&self) -> bool {
        self.execution
            .outcome
            .as_ref()
            .is_none_or(|outcome| !outcome.crashes.is_empty() || outcome.ending != Ending::Exit(0))
    }

    /// The chain as single instructions, for a program that has no source to be shown.
    pub fn instructions(&self) -> Slice {
        let control = Control::of(&self.execution.trace, &self.execution.program);
        let mut question = self.question().question(Follow::Thin);
        question.control = Some(&control);
        question.answer(&self.execution.trace)
    }
}

/// The values where the program crashed.
fn values(execution: &Execution) -> Vec<(String, String)> {
    let Some(report) = execution.crash() else { return Vec::new() };
    let evidence = Crash::of(report).finding.evidence.into_iter();
    evidence.map(|step| step.values).rfind(|values| !values.is_empty()).unwrap_or_default()
}
