//! `whydunit count`: what a program executes, in numbers.

use super::run::Guest;
use crate::exit::Exit;
use crate::render::Output;
use events::count::{Counter, Counts};
use events::{Consumer, Plan};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Arguments of `whydunit count`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit count -- ./prog arguments         a table on standard error when the program has ended
  whydunit count --json -o counts.json -- ./prog

Exit codes: 0 the program ended by itself, whatever its own exit code; 1 it or a child of it was
ended by a signal; 2 wrong arguments, or it cannot be run; 70 a fault of our own. What each number
counts: docs/count.md.")]
pub struct Count {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the counts to a file instead of standard error
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    guest: Guest,
}

/// The counts of a run.
#[derive(Default, Serialize)]
pub struct Report {
    total: Counts,
    processes: BTreeMap<i32, BTreeMap<u32, Counts>>,
    event_bytes: u64,
}

/// What one process executed.
pub struct Counted {
    /// The kernel's number of the process.
    pub process: i32,
    threads: BTreeMap<u32, Counts>,
    event_bytes: u64,
}

/// A counter that leaves its sums behind when the stream ends.
struct Reporting {
    process: i32,
    counter: Counter,
    all: Arc<Mutex<Vec<Counted>>>,
}

impl Consumer for Reporting {
    fn records(&mut self, bytes: &[u8]) {
        self.counter.records(bytes);
    }

    fn end(&mut self) {
        let mut threads = std::mem::take(&mut self.counter.threads);
        threads.retain(|_, counts| *counts != Counts::default());
        let mut all = self.all.lock().unwrap_or_else(|broken| broken.into_inner());
        all.push(Counted { process: self.process, threads, event_bytes: self.counter.bytes });
    }
}

impl Count {
    /// Runs the program and prints what it executed.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut output = Output::of(self.output.as_deref(), self.json)?;
        let (all, outcome) = count(|plan, make| self.guest.run(plan, make))?;
        let report = Report::of(&all);
        let text = if self.json { serde_json::to_string(&report)? + "\n" } else { report.table() };
        self.guest.report(&outcome, &mut Output::Error, false)?;
        output.write(&text)?;
        Ok(self.guest.exit(&outcome))
    }
}

type Make<'a> = &'a mut (dyn FnMut(i32) -> Box<dyn Consumer> + Send);

/// Counts what each process of a run executes.
pub fn count<T>(
    run: impl FnOnce(Plan, Make<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<(Vec<Counted>, T)> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let plan = Plan::everything();
    let outcome = run(plan, &mut |process| {
        Box::new(Reporting { process, counter: Counter::default(), all: all.clone() })
    })?;
    let counted = std::mem::take(&mut *all.lock().unwrap_or_else(|broken| broken.into_inner()));
    Ok((counted, outcome))
}

impl Report {
    /// All of these together.
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Counted>) -> Self {
        let mut report = Self::default();
        for counted in all {
            report.event_bytes += counted.event_bytes;
            let process = report.processes.entry(counted.process).or_default();
            for (thread, counts) in &counted.threads {
                report.total.add(counts);
                process.entry(*thread).or_default().add(counts);
            }
        }
        report
    }

    /// As text.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let total = &self.total;
        let rows = [
            ("instructions", total.instructions),
            ("blocks", total.blocks),
            ("conditional branches", total.branches),
            ("  taken", total.taken),
            ("calls", total.calls),
            ("returns", total.returns),
            ("loads", total.loads),
            ("stores", total.stores),
            ("system calls", total.syscalls),
        ];
        for (name, value) in rows {
            text += &format!("{value:>16}  {name}\n");
        }
        let threads: usize = self.processes.values().map(BTreeMap::len).sum();
        if threads > 1 {
            for (process, threads) in &self.processes {
                for (thread, counts) in threads {
                    let count = counts.instructions;
                    text += &format!(
                        "{count:>16}  instructions of process {process}, thread {thread}\n"
                    );
                }
            }
        }
        text
    }
}
