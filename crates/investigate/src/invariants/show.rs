//! Models in words: what they hold, what is known of a place, and what sets two of them apart.

use super::report::words::{grouped, hypothesis_line};
use anyhow::ensure;
use base::PlaceName;
use invariants::Model;
use invariants::model::{Point, SiteId};
use serde::Serialize;
use std::collections::BTreeSet;

/// A model in numbers.
#[derive(Serialize)]
pub struct Info {
    /// The program.
    pub program: String,
    /// Runs that were learned from.
    pub runs: u32,
    /// Points of which anything is known.
    pub points: usize,
    /// Expressions that are tracked.
    pub values: usize,
    /// Reads with definitions.
    pub reads: usize,
    /// Pairs of a read and a write that it used.
    pub pairs: usize,
    /// Lines that were executed.
    pub lines: usize,
    /// Evaluations of all expressions.
    pub evaluations: u64,
}

impl Info {
    /// Of a model.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let points = || model.known_points();
        let reads = || points().filter_map(|point| point.reads.as_ref());
        let counts = points().flat_map(|point| &point.values).map(|(_, one)| one.count());
        Self {
            program: model.program.clone(),
            runs: model.runs,
            points: points().count(),
            values: points().map(|point| point.values.len()).sum(),
            reads: reads().count(),
            pairs: reads().map(|reads| reads.definitions.len()).sum(),
            lines: model.executed.len(),
            evaluations: counts.fold(0, u64::saturating_add),
        }
    }
}

/// What is known of one point, in lines.
#[derive(Serialize)]
pub struct Shown {
    /// Where it is.
    pub place: String,
    /// What it accesses or calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Its invariants.
    pub invariants: Vec<String>,
}

/// The points of a place.
pub fn show(model: &Model, place: &PlaceName) -> anyhow::Result<Vec<Shown>> {
    let is_there = |point: &&Point| {
        let site = &point.site;
        match place {
            PlaceName::Line { file, line } => {
                let path = site.file.as_deref().unwrap_or_default();
                site.line == Some(*line) && ends_with(path, file)
            }
            PlaceName::Function(name) => site.key.line.function == *name,
            PlaceName::Address(_) => false,
        }
    };
    let mut points: Vec<&Point> = model.known_points().filter(is_there).collect();
    ensure!(!points.is_empty(), "the model knows no point at {place}");
    points.sort_by_key(|point| (point.site.line, point.site.key.clone()));
    Ok(points.into_iter().map(|point| shown(model, point)).collect())
}

/// Whether a path ends in the parts of another.
fn ends_with(path: &str, parts: &str) -> bool {
    std::path::Path::new(path).ends_with(parts)
}

fn shown(model: &Model, point: &Point) -> Shown {
    let mut invariants: Vec<String> = point
        .values
        .iter()
        .map(|(role, one)| format!("{role}: {}", hypothesis_line(model, one)))
        .collect();
    if let Some(reads) = &point.reads {
        let writers = reads.definitions.iter().map(|pair| {
            let writer = match pair.site {
                SiteId::EXTERNAL => "nobody".into(),
                site => model.point(site).site.to_string(),
            };
            format!("{writer} ({} times)", grouped(pair.count))
        });
        invariants.push(format!("written by: {}", writers.collect::<Vec<_>>().join(", ")));
        if let Some((origin, share)) = reads.origin() {
            let threads = match origin {
                invariants::uses::Origin::Local => "the reader's own thread",
                invariants::uses::Origin::Remote => "another thread",
            };
            invariants
                .push(format!("always written by {threads} ({:.0} % of runs)", share * 100.0));
        }
        if reads.follower().is_some() {
            invariants.push("the same as at the thread's read before".into());
        }
    }
    if let Some(writes) = point.writes.filter(|writes| writes.is_always_used()) {
        invariants.push(format!("what it writes is always read ({} times)", grouped(writes.used)));
    }
    Shown {
        place: point.site.to_string(),
        what: point.what.clone().filter(|what| !what.is_empty()),
        invariants,
    }
}

/// What sets two models apart.
#[derive(Serialize)]
pub struct Difference {
    /// Points of the second that the first does not know.
    pub new: usize,
    /// Points of the first that the second does not have.
    pub gone: usize,
    /// Points that both know.
    pub common: usize,
    /// Those of them whose invariants differ, in lines.
    pub changed: Vec<Shown>,
}

/// What the second model has that the first has not, and the other way round.
#[must_use]
pub fn difference(first: &Model, second: &Model) -> Difference {
    let keys = |model: &Model| -> BTreeSet<_> {
        model.known_points().map(|point| point.site.key.clone()).collect()
    };
    let (before, after) = (keys(first), keys(second));
    let mut changed = Vec::new();
    for point in second.known_points() {
        let Some(known) = first.known_points().find(|known| known.site.key == point.site.key)
        else {
            continue;
        };
        let (was, is) = (shown(first, known), shown(second, point));
        let lines = |shown: &Shown| shown.invariants.clone();
        let fresh: Vec<String> = lines(&is)
            .into_iter()
            .filter(|line| !without_counts(&lines(&was)).contains(&without_count(line)))
            .collect();
        if !fresh.is_empty() {
            changed.push(Shown { invariants: fresh, ..is });
        }
    }
    let common = before.intersection(&after).count();
    Difference { new: after.len() - common, gone: before.len() - common, common, changed }
}

/// Two runs evaluate something as often as they like.
fn without_count(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(" (") {
        let Some(end) = rest[at..].find(')') else { break };
        out += &rest[..at];
        rest = &rest[at + end + 1..];
    }
    out + rest
}

fn without_counts(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| without_count(line)).collect()
}
