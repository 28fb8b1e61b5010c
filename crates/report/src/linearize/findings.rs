//! Refuted specifications as findings, which is what code review tools and CI systems take (SARIF) and what every
//! command's JSON has: one for each file, with the counterexample as its evidence.

use super::{Judged, Outcome};
use base::{Confidence, Finding, Place, Step};
use linearize::Verdict;
use linearize::explore::history::{CallShown, History, StepShown};
use linearize::model::Program;
use spec::Source;

/// The kind of finding.
pub const KIND: &str = "not-linearizable";

/// What it means.
pub const MEANING: &str = "A history whose results no order of its operations explains";

/// One finding for each file that is refuted.
pub fn findings(all: &[Judged]) -> Vec<Finding> {
    all.iter().filter_map(|judged| finding(judged, judged.outcome.as_ref().ok()?)).collect()
}

fn finding(judged: &Judged, outcome: &Outcome) -> Option<Finding> {
    let Verdict::Refuted { searched, .. } = &outcome.judgement.verdict else { return None };
    let history = searched.counterexample.as_ref()?;
    let written = Written { program: &outcome.program, source: &judged.source };
    let last = history.steps.last();
    Some(Finding {
        kind: KIND.to_owned(),
        title: format!(
            "not linearizable: no order of {} operations explains their results",
            history.calls.len()
        ),
        confidence: Confidence::Certain,
        place: last.and_then(|step| written.place(&history.calls[step.call], step)),
        when: None,
        evidence: evidence(history, &written),
    })
}

/// The operations with what they returned, then what they did, in order.
fn evidence(history: &History, written: &Written<'_>) -> Vec<Step> {
    let calls = history.calls.iter().map(|call| Step::new(told(call)));
    let steps = history.steps.iter().map(|step| {
        let call = &history.calls[step.call];
        let told = Step::new(format!("thread {}, {}: {}", call.thread, call.operation, step.text));
        let placed = written.place(call, step).into_iter().fold(told, Step::at);
        step.changed.iter().fold(placed, |step, cell| step.with(&cell.name, &cell.value))
    });
    calls.chain(steps).collect()
}

fn told(call: &CallShown) -> String {
    let results = match call.results.as_slice() {
        _ if call.pending => " does not return".to_owned(),
        [] => String::new(),
        results => format!(" returns {}", results.join(", ")),
    };
    format!("thread {}: {}({}){results}", call.thread, call.operation, call.arguments.join(", "))
}

/// A specification as it is written.
struct Written<'a> {
    program: &'a Program,
    source: &'a Source,
}

impl Written<'_> {
    /// The line of a sub-operation.
    fn place(&self, call: &CallShown, shown: &StepShown) -> Option<Place> {
        let mut operations = self.program.operations.iter();
        let operation = operations.find(|operation| operation.title() == call.operation)?;
        let step = operation.steps.iter().find(|step| step.label == shown.label)?;
        let line = u32::try_from(self.source.position(step.span.start).line).ok()?;
        Some(Place::line(self.source.name(), line).in_function(&call.operation))
    }
}
