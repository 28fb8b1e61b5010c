//! `whydunit info`: what is in a recording. Nothing of it is executed.

mod text;

use crate::exit::Exit;
use crate::render::{self, Output};
use anyhow::{Context, anyhow};
use recording::format::VERSION;
use recording::{Completeness, Meta, ProcessEnd, ProcessStart, Recording, Summary};
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `whydunit info`.
#[derive(clap::Args)]
#[command(after_help = "\
Every byte of the file is read and compared with its checksum.

Examples:
  whydunit info prog.wd          what was recorded, and how each process ended
  whydunit info --json prog.wd   the same for a script

Exit codes: 0 the recording is complete; 1 it is cut short or damaged, and what is said holds for the
part before that; 2 wrong arguments, or it is no recording that can be read. The fields of --json:
docs/record.md.")]
pub struct Info {
    /// The recording
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What is told of a recording: the fields of `--json`.
#[derive(Serialize)]
struct Contents<'a> {
    file: String,
    bytes: u64,
    version: u32,
    complete: bool,
    /// In a sentence, what is missing if not all is there.
    state: String,
    #[serde(flatten)]
    meta: &'a Meta,
    /// Nanoseconds.
    duration: Option<u64>,
    stopped: Option<&'a str>,
    notes: &'a [String],
    totals: Totals,
    processes: Vec<Process<'a>>,
    mapped_files: usize,
    mapped_bytes: u64,
}

/// Sums over all processes.
#[derive(Default, Serialize)]
struct Totals {
    processes: u64,
    threads: u64,
    system_calls: u64,
    signals: u64,
    switches: u64,
    /// Nothing where one of them did not count.
    instructions: Option<u64>,
    log_bytes: u64,
}

/// A process: its start, and its end where that is known.
#[derive(Serialize)]
struct Process<'a> {
    #[serde(flatten)]
    start: &'a ProcessStart,
    ended: Option<&'a ProcessEnd>,
    log_bytes: u64,
}

impl Info {
    /// Reads the recording and tells what is in it.
    pub fn run(self) -> anyhow::Result<Exit> {
        let name = self.file.display().to_string();
        let mut output = Output::answer(self.output.as_deref(), self.json)?;
        let recording = Recording::open(&self.file).map_err(|error| anyhow!("{name} {error}"))?;
        let state = recording.verify().with_context(|| format!("cannot read {name}"))?;
        let contents = Contents::of(&recording, &state, name);
        let text = if self.json {
            render::json::result("info", &contents)
        } else {
            text::page(&contents, output.style())
        };
        output.write(&text)?;
        Ok(if state == Completeness::Whole { Exit::Clean } else { Exit::Findings })
    }
}

impl<'a> Contents<'a> {
    fn of(recording: &'a Recording, state: &Completeness, file: String) -> Self {
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
