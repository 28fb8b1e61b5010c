//! **Execution slices**: a recording of some stretches of a run alone. What happened between them is
//! left out, and what it changed is put in its place when the slice is replayed.
//!
//! Which stretches are kept is said by whoever asks, as [`Kept`]: executions by number, and which
//! instructions belong to one statement. The rest is worked out here, in two replays: [`stretches`]
//! finds where each one begins and ends and which memory the rest writes; `write` then goes from
//! one to the next, and writes down how the state at the end of one differs from the state at the
//! beginning of the next.
//!
//! The file is a recording like any other (`recording::log::Skip` is the entry that stands for what
//! is left out), so everything that reads recordings reads it. Where a stretch ends its replay is
//! compared with the original.

mod steps;
mod stretches;
mod write;

pub use steps::{KeptStretch, steps};
pub use write::save;

use crate::timeline::Timeline;
use engine::control::Instant;
use engine::host::RunError;
use rustc_hash::FxHashMap;

/// What is to be kept of a run.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Executions that are kept: how many instructions of all threads were executed before each, in
    /// rising order.
    pub moments: Vec<u64>,
    /// The statements that instructions belong to, by address. Executions elsewhere are not kept:
    /// what they change is put in place instead.
    pub statements: FxHashMap<u64, u32>,
    /// Where it ends: how many instructions were executed before.
    pub until: u64,
    /// Where counting begins; the beginning of the process if there is none.
    pub from: Option<Instant>,
    /// What it is a slice of, in words.
    pub about: String,
}

/// What came of saving a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Stretches.
    pub stretches: usize,
    /// Instructions in them.
    pub kept: u64,
    /// Instructions that were left out.
    pub skipped: u64,
    /// Bytes of memory put in place of those.
    pub injected: u64,
    /// Bytes of the file.
    pub size: u64,
}

/// Why a slice was not saved.
#[derive(Debug)]
pub enum SaveError {
    /// None of the executions is of a statement.
    Nothing,
    /// The file cannot be written, or a fault of our own.
    Record(crate::record::RecordError),
}

impl From<RunError> for SaveError {
    fn from(error: RunError) -> Self {
        Self::Record(crate::record::RecordError::Run(error))
    }
}

impl From<recording::WriteError> for SaveError {
    fn from(error: recording::WriteError) -> Self {
        Self::Record(error.into())
    }
}

/// The stretches of a run that are kept.
fn find(line: &mut Timeline, kept: Kept) -> Result<stretches::Found, RunError> {
    let begins = match kept.from {
        Some(from) => from.time,
        None => line.seek(Instant { time: 0, pc: None })?.at.time,
    };
    let from = kept.from;
    let (consumer, found) = stretches::Finder::new(kept, begins);
    let plan = events::Plan::everything().with_syscalls(events::plan::Syscalls::Ranges);
    line.observe(from, None, plan, Box::new(consumer))?;
    let found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    found.ok_or_else(|| RunError::Fault { what: "the replay reported nothing".into(), pc: 0 })
}
