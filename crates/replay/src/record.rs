//! Makes a recording of a program and all its children.

use crate::keep::Keeper;
use crate::machine::Processor;
use engine::config::Schedule;
use engine::host::{self, Job, Outcome, RunError};
use engine::listen::MakeConsumer;
use engine::log_listen::EventSinks;
use events::Discard;
use recording::{Meta, Summary, Text, WriteError, Writer};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What came of it.
#[derive(Debug)]
pub struct Recorded {
    /// How the program ended.
    pub outcome: Outcome,
    /// What the recording says of itself.
    pub summary: Summary,
    /// Bytes of the file.
    pub size: u64,
}

/// Why there is no recording.
#[derive(Debug)]
pub enum RecordError {
    /// The program cannot be run, or a fault of our own.
    Run(RunError),
    /// The file cannot be written.
    Write(WriteError),
}

impl fmt::Display for RecordError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(error) => error.fmt(out),
            Self::Write(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<WriteError> for RecordError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

/// Runs a job that records, to its end; the recording goes to `path`.
pub fn record(job: &Job, path: &Path, replace: bool) -> Result<Recorded, RecordError> {
    record_observed(job, path, replace, &mut |_| Box::new(Discard::default()))
}

/// The same of a job whose plan observes something: what it sees goes to these consumers.
pub fn record_observed(
    job: &Job,
    path: &Path,
    replace: bool,
    events: MakeConsumer<'_>,
) -> Result<Recorded, RecordError> {
    // A recording that is there is not given up for a program that cannot be run.
    host::check(job).map_err(RecordError::Run)?;
    let meta = meta(job);
    let writer = if replace { Writer::replace(path, &meta)? } else { Writer::create(path, &meta)? };
    let keeper = Keeper::new(writer, meta.command.clone());
    let begun = Instant::now();
    let run = host::run_with(
        job,
        EventSinks { events, logs: Some(&mut |process, origin| keeper.begin(process, origin)) },
    );
    let mut kept = keeper.lock();
    let stopped = match &run {
        Ok(outcome) => kept.failure.clone().or(outcome.refused.clone()),
        Err(error) => Some(error.to_string()),
    };
    if let Ok(outcome) = &run {
        kept.ended(outcome.ending);
    }
    let summary = Summary {
        duration: begun.elapsed().as_nanos() as u64,
        processes: kept.processes.clone(),
        stopped,
        notes: run.as_ref().map(|outcome| outcome.notes.clone()).unwrap_or_default(),
        events: run.as_ref().map_or(0, |outcome| outcome.events),
    };
    let finished = kept.writer.take().map(|writer| writer.finish(&summary)).transpose();
    let outcome = run.map_err(RecordError::Run)?;
    let file = finished?;
    let size = file.and_then(|file| file.metadata().ok()).map_or(0, |meta| meta.len());
    Ok(Recorded { outcome, summary, size })
}

fn meta(job: &Job) -> Meta {
    let command = [&job.program].into_iter().chain(&job.arguments);
    let how = job.record.unwrap_or_default();
    let processor = Processor::here();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Meta {
        tool: env!("CARGO_PKG_VERSION").into(),
        recorded: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        command: command.map(|word| Text(word.as_bytes().to_vec())).collect(),
        directory: std::env::current_dir()
            .map(|path| Text(path.as_os_str().as_bytes().to_vec()))
            .unwrap_or_default(),
        features: processor.shown_features(),
        processor: processor.name().to_owned(),
        quirks: Some(job.quirks),
        kernel: kernel.trim().into(),
        schedule: schedule_text(how.schedule),
        cut: how.cut,
        region: None,
        slice: None,
    }
}

/// A schedule as it is written on the command line.
pub fn schedule_text(schedule: Schedule) -> String {
    match schedule {
        Schedule::Fair => "fair".into(),
        Schedule::Random { seed } => format!("random:{seed}"),
        Schedule::Walk { seed } => format!("walk:{seed}"),
        Schedule::Pct { depth, seed, events: 0 } => format!("pct:{depth},{seed}"),
        Schedule::Pct { depth, seed, events } => format!("pct:{depth},{seed},{events}"),
    }
}
