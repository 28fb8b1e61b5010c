//! What a run did that no run before did, and how noteworthy that is.

use crate::model::{LineKey, Role, SiteId};
use crate::uses::{Origin, combined};
use crate::value::{Value, Violation};
use std::collections::BTreeMap;

/// When something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occurrence {
    /// Ticks before.
    pub tick: u64,
    /// The instruction.
    pub pc: u64,
    /// The kernel's id of its thread.
    pub thread: u32,
    /// Instructions of all threads before.
    pub step: u64,
}

/// What is new about a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It used a definition outside its DSet.
    Definition,
    /// It used what its own thread wrote, or another, and that never was so.
    Origin(Origin),
    /// It used another definition than the thread's read before it.
    Follower,
}

/// What is new.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A value.
    Value {
        /// Of which expression.
        role: Role,
        /// The value.
        value: Value,
        /// What it violates.
        violation: Violation,
    },
    /// What a read used.
    Flow {
        /// Everything that is new about it, with the confidence of each.
        flows: Vec<(Flow, f64)>,
        /// Who had written it.
        definition: SiteId,
        /// Whether in the same thread.
        local: bool,
        /// How often the read was executed in training.
        uses: u64,
    },
    /// A definition was overwritten before it was used, for the first time.
    Lost {
        /// By whom.
        by: SiteId,
        /// How often it had been used before that.
        used: u64,
    },
    /// Code ran that never did.
    NewCode {
        /// Whether all of its function is new.
        function: bool,
        /// Its other new lines.
        lines: Vec<u32>,
    },
}

/// A piece of memory that was accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// Its first byte.
    pub address: u64,
    /// The block of the heap that it is in, if it is in one: first address and size.
    pub block: Option<(u64, u64)>,
}

/// Something that a run did and no run before.
#[derive(Clone, Debug, PartialEq)]
pub struct Anomaly {
    /// What.
    pub what: What,
    /// Where.
    pub site: SiteId,
    /// How noteworthy: by how much confidence in an invariant has fallen.
    pub confidence: f64,
    /// When first.
    pub first: Occurrence,
    /// How often.
    pub count: u64,
    /// The memory that was accessed, if it is about memory.
    pub memory: Option<Accessed>,
}

/// Most noteworthy first; of those that are alike, the earlier one. Of several about one expression of one
/// line only the first is kept: optimised or not, a line reads a variable more than once.
#[must_use]
pub fn ranked(anomalies: Vec<Anomaly>, line_of: impl Fn(SiteId) -> LineKey) -> Vec<Anomaly> {
    let mut ordered = together(anomalies);
    ordered.sort_by(|one, other| {
        other.confidence.total_cmp(&one.confidence).then(one.first.step.cmp(&other.first.step))
    });
    let mut told: BTreeMap<(LineKey, u8), usize> = BTreeMap::new();
    let mut kept: Vec<Anomaly> = Vec::new();
    for anomaly in ordered {
        let key = (line_of(anomaly.site), sort(&anomaly.what));
        let at = *told.entry(key).or_insert(kept.len());
        match kept.get_mut(at) {
            Some(earlier) => earlier.count += anomaly.count,
            None => kept.push(anomaly),
        }
    }
    kept
}

/// What readers take for the same thing.
fn sort(what: &What) -> u8 {
    match what {
        What::Value { role: Role::Read, .. } => 0,
        What::Value { role: Role::Written | Role::Difference, .. } => 1,
        What::Value { role: Role::Result, .. } => 2,
        What::Flow { .. } => 3,
        What::Lost { .. } => 4,
        What::NewCode { .. } => 5,
        What::Value { role: Role::Argument(number) | Role::Entry(number), .. } => 6 + number,
    }
}

/// Joins what is new about one read into one anomaly, whose confidence is the geometric mean.
fn together(anomalies: Vec<Anomaly>) -> Vec<Anomaly> {
    let mut reads: BTreeMap<SiteId, usize> = BTreeMap::new();
    let mut joined: Vec<Anomaly> = Vec::new();
    for mut anomaly in anomalies {
        let site = anomaly.site;
        if let What::Flow { flows, .. } = &mut anomaly.what {
            if let Some(at) = reads.get(&site)
                && let What::Flow { flows: known, .. } = &mut joined[*at].what
            {
                known.append(flows);
                let each: Vec<f64> = known.iter().map(|(_, confidence)| *confidence).collect();
                joined[*at].confidence = combined(&each);
                continue;
            }
            reads.insert(site, joined.len());
        }
        joined.push(anomaly);
    }
    joined
}
