//! A question about values, as a person or a protocol puts it: moments and values in words, which
//! dependences to follow, and what to leave out. [`Query::ask`] finds out what is meant in an execution
//! and answers.

use super::ablation::{self, Ablation};
use super::execution::Execution;
use super::replayed::Replayed;
use crate::case::Case;
use crate::moments::thread_of;
use analyze::dependence::control::Control;
use analyze::slice::ending::Asked;
use analyze::slice::view::has_source;
use analyze::slice::{Follow, Question, Slice, Wants, constants};
use anyhow::Context;
use base::{Moment, ThreadNumber};

/// What is asked. Values are written as on the command line (docs/places-and-values.md).
#[derive(Clone, Debug)]
pub struct Query {
    /// The moment to look back from; the crash, or the end, if there is none.
    pub at: Option<Moment>,
    /// Whether the moment is when the statement there has been executed; else before it.
    pub after: bool,
    /// Values at that moment; everything that the statement used if there are none.
    pub values: Vec<String>,
    /// Whether it is also asked why the statement at that moment was executed.
    pub control: bool,
    /// Which dependences to follow.
    pub follow: Follow,
    /// What came of the values, instead of what they came from.
    pub forward: bool,
    /// Leave out what comes from these values.
    pub prune: Vec<String>,
    /// Only what came of a moment.
    pub chop: Option<Chop>,
    /// Look back no further than this moment.
    pub from: Option<Moment>,
    /// Look no further than this moment.
    pub to: Option<Moment>,
    /// Only what these threads did; all if there are none.
    pub threads: Vec<ThreadNumber>,
    /// Most dependences between the question and a statement.
    pub depth: u32,
    /// Most executions of which dependences are kept; all are counted.
    pub nodes: usize,
    /// Whether saved and restored registers are passed by.
    pub bypass: bool,
    /// Which source of precision to do without, to see what it is worth.
    pub ablation: Option<Ablation>,
}

/// Where a chop begins.
#[derive(Clone, Debug)]
pub struct Chop {
    /// The moment.
    pub at: Moment,
    /// Values there; everything that the statement made if there are none.
    pub values: Vec<String>,
}

/// Executions of which dependences are kept if nobody says otherwise.
pub const NODES: usize = 100_000;

impl Query {
    /// Asks about the end of a run: everything that took part.
    pub fn new(follow: Follow) -> Self {
        Self {
            at: None,
            after: false,
            values: Vec::new(),
            control: false,
            follow,
            forward: false,
            prune: Vec::new(),
            chop: None,
            from: None,
            to: None,
            threads: Vec::new(),
            depth: u32::MAX,
            nodes: NODES,
            bypass: true,
            ablation: None,
        }
    }

    /// Puts the question to a process of a case. `late`: the answer needs no numbers that are counted from
    /// the beginning, so if the question begins at the end, as little of the run as possible is observed.
    pub fn ask_case(
        &self,
        case: &Case,
        process: u32,
        memory: u64,
        late: bool,
    ) -> anyhow::Result<(Execution, Asked, Slice)> {
        let sight = match self.names_values() {
            true => Some(Replayed::of(case, process)?),
            false => None,
        };
        if late && self.begins_at_end() {
            let ask = |execution: &Execution| self.tail_answer(execution);
            let (execution, answer) = Execution::end_of(case, process, memory, sight, ask)?;
            if let Some((asked, answer)) = answer {
                return Ok((execution, asked, answer));
            }
            return self.ask(execution);
        }
        let mut execution = Execution::of(case, process, memory)?;
        execution.sight = sight;
        self.ask(execution)
    }

    /// Whether values are asked about by name: what is in memory may then have to be looked at.
    fn names_values(&self) -> bool {
        let chopped = self.chop.iter().flat_map(|chop| &chop.values);
        let mut all = self.values.iter().chain(&self.prune).chain(chopped);
        all.any(|value| !value.starts_with(['$', '[']))
    }

    /// Puts the question to an execution.
    pub fn ask(&self, mut execution: Execution) -> anyhow::Result<(Execution, Asked, Slice)> {
        if let Some(ablation) = self.ablation {
            ablation::coarsen(&mut execution.trace, &execution.program, ablation);
        }
        let asked = self.asked(&execution)?;
        let answer = self.answer(&execution, &asked)?;
        self.check(&execution, &asked, &answer)?;
        Ok((execution, asked, answer))
    }

    /// Whether the question can be asked of the end of a run alone: it begins there and follows no control.
    fn begins_at_end(&self) -> bool {
        self.at.as_ref().is_none_or(Moment::is_counted_from_end)
            && self.follow != Follow::Full
            && !self.forward
            && self.from.is_none()
            && self.to.is_none()
            && self.chop.is_none()
            && self.ablation.is_none()
    }

    /// The answer from the end of a run, if that is enough for it.
    fn tail_answer(&self, execution: &Execution) -> anyhow::Result<Option<(Asked, Slice)>> {
        let asked = self.asked(execution)?;
        if asked.wants.control.is_some() {
            return Ok(None);
        }
        let answer = self.answer(execution, &asked)?;
        if !answer.is_open {
            self.check(execution, &asked, &answer)?;
        }
        Ok((!answer.is_open).then_some((asked, answer)))
    }

    fn asked(&self, execution: &Execution) -> anyhow::Result<Asked> {
        let mut asked = self.asked_values(execution)?;
        if self.control {
            asked.wants.control = asked.pc;
        }
        Ok(asked)
    }

    fn asked_values(&self, execution: &Execution) -> anyhow::Result<Asked> {
        let at = self.at.as_ref();
        if self.forward {
            let at = at.or(self.from.as_ref());
            return execution
                .asked_forward(at.context("--forward needs --at MOMENT")?, &self.values);
        }
        if self.after {
            return execution.asked_after(at.context("--after needs a moment")?, &self.values);
        }
        execution.asked(at.or(self.to.as_ref()), &self.values)
    }

    /// Whether there was anything to ask about.
    fn check(&self, execution: &Execution, asked: &Asked, answer: &Slice) -> anyhow::Result<()> {
        if self.forward {
            return Ok(());
        }
        execution.refuse_left_over(asked, &self.values, answer)
    }

    fn answer(&self, execution: &Execution, asked: &Asked) -> anyhow::Result<Slice> {
        let needs_control = self.follow == Follow::Full || asked.wants.control.is_some();
        let control = needs_control.then(|| Control::of(&execution.trace, &execution.program));
        let foreign = |pc| !has_source(&execution.program, pc);
        let mut question = asked.question(self.follow);
        question.control = control.as_ref();
        question.foreign = Some(&foreign);
        question.constants = constants(&execution.program);
        self.limit(execution, &mut question)?;
        if self.forward {
            return Ok(question.forward(&execution.trace).0);
        }
        let Some(chop) = &self.chop else { return Ok(question.answer(&execution.trace)) };
        let start = execution.asked_forward(&chop.at, &chop.values)?;
        let mut from = start.question(self.follow);
        (from.control, from.to, from.nodes) = (question.control, question.moment, 0);
        from.threads.clone_from(&question.threads);
        let (_, between) = from.forward(&execution.trace);
        question.from = question.from.max(start.moment);
        question.within = Some(&between);
        Ok(question.answer(&execution.trace))
    }

    /// Tells a question what to leave out.
    fn limit(&self, execution: &Execution, question: &mut Question<'_>) -> anyhow::Result<()> {
        for number in &self.threads {
            let moment = Moment { thread: Some(*number), ..Moment::END };
            let thread = thread_of(&moment, &execution.threads)?;
            question.threads.extend(thread.map(|thread| thread as u32));
        }
        question.nodes = self.nodes.max(1);
        question.depth = self.depth;
        question.bypass = self.bypass && self.ablation != Some(Ablation::Saves);
        if let Some(from) = &self.from {
            question.from = execution.moment(from)?.moment;
        }
        if let Some(to) = &self.to {
            question.to = execution.moment(to)?.moment;
        }
        if !self.prune.is_empty() {
            let found = execution.moment(self.at.as_ref().unwrap_or(&Moment::END))?;
            let mut pruned = Wants::default();
            for value in &self.prune {
                execution.want(&found, value, &mut pruned)?;
            }
            (question.prune_parts, question.prune_memory) = (pruned.parts, pruned.memory);
        }
        if execution.trace.is_tail {
            // What nobody can have written need not be looked for.
            question.prune_memory.extend(constants(&execution.program));
        }
        Ok(())
    }
}
