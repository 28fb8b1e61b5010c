//! Anomalies as findings: what is new in words, where and when, and what was ordinary before.

pub mod words;

use super::Watched;
use crate::case::Case;
use crate::naming::{Memory, Names};
use crate::threads::Threads;
use base::{Address, Confidence, Finding, Place, Position, ProcessNumber, Step, Tick, When};
use invariants::anomaly::{Anomaly, Flow, Occurrence, What};
use invariants::model::{Model, Role, SiteId};
use invariants::value::Rule;
use serde::Serialize;

/// Confidence from which an anomaly is told by default.
pub const THRESHOLD: f64 = 10.0;
/// What code counts that never ran, by default.
pub const NEW_CODE: f64 = 1.0;

/// Which anomalies are told.
#[derive(Clone, Debug)]
pub struct Filter {
    /// From this confidence on.
    pub threshold: f64,
    /// Only those in files whose path ends so.
    pub file: Option<String>,
    /// Only those in this function.
    pub function: Option<String>,
    /// Only those on this line.
    pub line: Option<u32>,
    /// Only those of these kinds.
    pub kinds: Vec<String>,
    /// Only those about this variable or called function.
    pub about: Option<String>,
    /// Only those of this thread, by its number.
    pub thread: Option<u32>,
}

impl Default for Filter {
    fn default() -> Self {
        let (file, function, line, about, thread) = Default::default();
        Self { threshold: THRESHOLD, file, function, line, kinds: Vec::new(), about, thread }
    }
}

/// An anomaly as a finding, with what it is ranked by.
#[derive(Clone, Serialize)]
pub struct RankedFinding {
    /// What is new.
    #[serde(flatten)]
    pub finding: Finding,
    /// How noteworthy it is.
    pub score: f64,
    /// Its rank among all of the run, from 1.
    pub rank: usize,
    /// Instructions of the process before.
    pub step: u64,
}

/// The kinds of findings, and what each means.
pub const KINDS: [(&str, &str); 9] = [
    ("new-value", "a value that no run before had here"),
    ("new-change", "a variable changed by an amount that it never changed by here"),
    ("new-kind", "a pointer to an object of a kind that no run before had here, or NULL"),
    ("new-argument", "a function was called with a value that it never had"),
    ("new-result", "a function returned what it never had"),
    ("new-definition", "a value was read that another statement wrote than ever before"),
    ("new-order", "another thread wrote what was read than in all runs before"),
    ("lost-value", "a value was overwritten before it was used, and never was so before"),
    ("new-code", "code ran that never did"),
];

/// The stable name of an anomaly's kind.
#[must_use]
pub fn kind(what: &What) -> &'static str {
    match what {
        What::Value { violation, .. } if violation.rule == Rule::Kinds => "new-kind",
        What::Value { role: Role::Difference, .. } => "new-change",
        What::Value { role: Role::Argument(_) | Role::Entry(_), .. } => "new-argument",
        What::Value { role: Role::Result, .. } => "new-result",
        What::Value { .. } => "new-value",
        What::Flow { flows, .. } if flows.iter().any(|(flow, _)| *flow == Flow::Definition) => {
            "new-definition"
        }
        What::Flow { .. } => "new-order",
        What::Lost { .. } => "lost-value",
        What::NewCode { .. } => "new-code",
    }
}

/// Makes findings of the anomalies of a process that pass a filter. The first of them, `named` many, get the
/// program's own names for what they access.
pub fn findings(
    case: &Case,
    process: u32,
    watched: &Watched,
    filter: &Filter,
    named: usize,
) -> anyhow::Result<Vec<RankedFinding>> {
    let model = &watched.learned.model;
    let threads = Threads::of(case.recording(), process);
    let mut names = Names::new(case, process, &watched.program);
    let mut told = Vec::new();
    for (rank, anomaly) in (1..).zip(&watched.learned.anomalies) {
        let when = when(process, &threads, &anomaly.first);
        if !filter.passes(model, anomaly, when) {
            continue;
        }
        let name = match anomaly.memory {
            Some(there) if told.len() < named => {
                let memory = Memory { address: there.address, block: there.block };
                names.at(anomaly.first.tick, anomaly.first.pc, memory)?
            }
            _ => None,
        };
        let finding = finding(model, anomaly, name.as_deref(), when);
        told.push(RankedFinding {
            finding,
            score: anomaly.confidence,
            rank,
            step: anomaly.first.step,
        });
    }
    Ok(told)
}

impl Filter {
    fn passes(&self, model: &Model, anomaly: &Anomaly, when: When) -> bool {
        let point = model.point(anomaly.site);
        let is =
            |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|it| it == found);
        let file = point.site.file.as_deref().unwrap_or_default();
        anomaly.confidence >= self.threshold
            && self.file.as_ref().is_none_or(|wanted| file.ends_with(wanted.as_str()))
            && is(&self.function, &point.site.key.line.function)
            && self.line.is_none_or(|line| point.site.line == Some(line))
            && (self.kinds.is_empty() || self.kinds.iter().any(|it| it == kind(&anomaly.what)))
            && is(&self.about, point.what.as_deref().unwrap_or_default())
            && self.thread.is_none_or(|thread| when.thread.0 == thread)
    }
}

fn when(process: u32, threads: &Threads, moment: &Occurrence) -> When {
    let position = Position { tick: Tick(moment.tick), pc: Address(moment.pc) };
    let thread = threads.number(moment.thread as i32, position.tick);
    When { process: ProcessNumber(process), thread, position }
}

/// One anomaly as a finding.
fn finding(model: &Model, anomaly: &Anomaly, name: Option<&str>, when: When) -> Finding {
    let score = anomaly.confidence;
    let place = place(model, anomaly.site, Some(anomaly.first.pc));
    let mut evidence = vec![Step::new(words::confidence(anomaly))];
    evidence.extend(words::before(model, anomaly));
    if let What::Flow { definition, .. } | What::Lost { by: definition, .. } = &anomaly.what
        && *definition != SiteId::EXTERNAL
    {
        let role =
            if matches!(anomaly.what, What::Lost { .. }) { "overwritten" } else { "written" };
        evidence.push(Step::new(role).at(self::place(model, *definition, None)));
    }
    Finding {
        kind: kind(&anomaly.what).into(),
        title: words::title(model, anomaly, name),
        confidence: match score {
            1000.0.. => Confidence::High,
            THRESHOLD.. => Confidence::Medium,
            _ => Confidence::Low,
        },
        place: Some(place),
        when: Some(when),
        evidence,
    }
}

/// Where a site is.
#[must_use]
pub fn place(model: &Model, site: SiteId, pc: Option<u64>) -> Place {
    let site = &model.point(site).site;
    let function = Some(site.key.line.function.clone()).filter(|name| !name.is_empty());
    Place { file: site.file.clone(), line: site.line, function, address: pc.map(Address) }
}
