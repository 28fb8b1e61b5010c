//! How a replay went, and where it left the recording if it did.

use crate::ending::Ending;
use serde::{Deserialize, Serialize};

/// The replay of one process of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessReplay {
    /// Its number in the recording.
    pub process: u32,
    /// The kernel's number of the process that was it again, which told of its events.
    pub runner: i32,
    /// How that went.
    pub replayed: Replayed,
}

/// How a replay of one process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// Where it went another way than the recording, if it did.
    pub divergence: Option<Divergence>,
    /// How the process ended in the recording, if that is known.
    pub ending: Option<Ending>,
    /// Ticks at the end.
    pub time: u64,
    /// Checks that were made.
    pub checks: u64,
    /// Entries of the log that were used.
    pub entries: u64,
}

/// The first moment at which a replay is not what was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    /// What was found, and what was expected.
    pub what: String,
    /// Thread.
    pub thread: i32,
    /// Ticks.
    pub time: u64,
    /// Where the guest was.
    pub pc: u64,
}
