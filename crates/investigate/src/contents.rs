//! What is in a recording, as data; nothing of it is executed.

use recording::format::VERSION;
use recording::{Completeness, Meta, ProcessEnd, ProcessStart, Recording, Summary};
use serde::Serialize;

/// What is told of a recording: the fields of `--json`.
#[derive(Serialize)]
pub struct Contents<'a> {
    /// The file, as it was named.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// The version of its format.
    pub version: u32,
    /// Whether all of it is there.
    pub complete: bool,
    /// In a sentence, what is missing if not all is there.
    pub state: String,
    /// What was recorded where.
    #[serde(flatten)]
    pub meta: &'a Meta,
    /// Nanoseconds.
    pub duration: Option<u64>,
    /// Why the recording ended before the program.
    pub stopped: Option<&'a str>,
    /// What is worth knowing of the recording.
    pub notes: &'a [String],
    /// Sums over all processes.
    pub totals: Totals,
    /// The processes.
    pub processes: Vec<Process<'a>>,
    /// Files that were mapped.
    pub mapped_files: usize,
    /// Bytes of them.
    pub mapped_bytes: u64,
}

/// Sums over all processes.
#[derive(Default, Serialize)]
pub struct Totals {
    /// Processes.
    pub processes: u64,
    /// Threads.
    pub threads: u64,
    /// System calls.
    pub system_calls: u64,
    /// Signals.
    pub signals: u64,
    /// Switches between threads.
    pub switches: u64,
    /// Nothing where one of them did not count.
    pub instructions: Option<u64>,
    /// Bytes of logs.
    pub log_bytes: u64,
}

/// A process: its start, and its end where that is known.
#[derive(Serialize)]
pub struct Process<'a> {
    /// How it began.
    #[serde(flatten)]
    pub start: &'a ProcessStart,
    /// How it ended.
    pub ended: Option<&'a ProcessEnd>,
    /// Bytes of logs.
    pub log_bytes: u64,
}

impl<'a> Contents<'a> {
    /// What is in a recording that was read to its end.
    #[must_use]
    pub fn of(recording: &'a Recording, state: &Completeness, file: String) -> Self {
        let summary = recording.summary();
        let processes: Vec<Process> =
            recording.processes().iter().map(|start| Process::of(recording, start)).collect();
        Self {
            file,
            bytes: recording.file_length(),
            version: VERSION,
            complete: *state == Completeness::Whole,
            state: state.to_string(),
            meta: recording.meta(),
            duration: summary.map(|summary| summary.duration),
            stopped: summary.and_then(|summary| summary.stopped.as_deref()),
            notes: summary.map_or(&[], |summary| &summary.notes),
            totals: Totals::of(&processes),
            processes,
            mapped_files: recording.blobs().count(),
            mapped_bytes: recording.blobs().map(|(_, length)| length).sum(),
        }
    }
}

impl<'a> Process<'a> {
    fn of(recording: &'a Recording, start: &'a ProcessStart) -> Self {
        let is_its = |end: &&ProcessEnd| end.process == start.process;
        let ends = recording.summary().map_or(&[][..], |summary: &Summary| &summary.processes);
        let log_bytes = recording.log_length(start.process).unwrap_or_default();
        Self { start, ended: ends.iter().find(is_its), log_bytes }
    }
}

impl Totals {
    fn of(processes: &[Process<'_>]) -> Self {
        let mut totals = Self { instructions: Some(0), ..Self::default() };
        for process in processes {
            totals.processes += 1;
            totals.log_bytes += process.log_bytes;
            let counted = process.ended.and_then(|end| end.instructions);
            let sum = totals.instructions.zip(counted);
            totals.instructions = sum.and_then(|(sum, more)| sum.checked_add(more));
            if let Some(end) = process.ended {
                totals.threads = totals.threads.saturating_add(end.threads);
                totals.system_calls = totals.system_calls.saturating_add(end.system_calls);
                totals.signals = totals.signals.saturating_add(end.signals);
                totals.switches = totals.switches.saturating_add(end.switches);
            }
        }
        totals
    }
}
