//! What was seen: rows exercised, bytes claimed and changed, and every claim that did not hold.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Failures beyond this many are only counted.
const KEPT: usize = 200;

/// What was seen of one row.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct RowTally {
    /// Calls compared that succeeded.
    pub succeeded: u64,
    /// Calls compared that failed.
    pub failed: u64,
    /// Bytes that the table listed.
    pub claimed: u64,
    /// Bytes that changed.
    pub changed: u64,
    /// The errors that calls failed with.
    pub errors: BTreeSet<i32>,
}

/// What was seen over one program or many.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct Tally {
    /// By name of the row.
    pub rows: BTreeMap<String, RowTally>,
    /// System calls made.
    pub calls: u64,
    /// Of these, compared.
    pub compared: u64,
    /// Not compared because other threads ran.
    pub threaded: u64,
    /// Not compared to save time.
    pub sampled_out: u64,
    /// Calls that the table does not know, by name, that were not refused.
    pub unknown: BTreeMap<String, u64>,
    /// Whether a program was ended because it could not be followed further.
    pub cut_short: bool,
    /// Claims that did not hold.
    pub failures: Vec<String>,
    /// How many there were.
    pub failure_count: u64,
}

impl Tally {
    /// Notes a claim that did not hold.
    pub fn fail(&mut self, what: String) {
        self.failure_count += 1;
        if self.failures.len() < KEPT {
            self.failures.push(what);
        }
    }

    /// Adds what another tally has seen.
    pub fn add(&mut self, other: Self) {
        for (name, row) in other.rows {
            let mine = self.rows.entry(name).or_default();
            mine.succeeded += row.succeeded;
            mine.failed += row.failed;
            mine.claimed += row.claimed;
            mine.changed += row.changed;
            mine.errors.extend(row.errors);
        }
        for (name, count) in other.unknown {
            *self.unknown.entry(name).or_default() += count;
        }
        self.cut_short |= other.cut_short;
        self.calls += other.calls;
        self.compared += other.compared;
        self.threaded += other.threaded;
        self.sampled_out += other.sampled_out;
        self.failure_count += other.failure_count;
        let room = KEPT.saturating_sub(self.failures.len());
        self.failures.extend(other.failures.into_iter().take(room));
    }

    /// How often a row was compared.
    pub fn seen(&self, row: &str) -> u64 {
        self.rows.get(row).map_or(0, |row| row.succeeded + row.failed)
    }
}
