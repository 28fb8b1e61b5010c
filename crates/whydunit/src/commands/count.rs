//! `whydunit count`: what a program executes, in numbers.

use super::run::Guest;
use crate::exit::Exit;
use anyhow::Context;
use events::count::{Counter, Counts};
use events::{Consumer, Plan};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Arguments of `whydunit count`.
#[derive(clap::Args)]
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
struct Report {
    total: Counts,
    processes: BTreeMap<i32, BTreeMap<u32, Counts>>,
    event_bytes: u64,
}

/// A counter that leaves its sums behind when the stream ends.
struct Reporting {
    process: i32,
    counter: Counter,
    report: Arc<Mutex<Report>>,
}

impl Consumer for Reporting {
    fn records(&mut self, bytes: &[u8]) {
        self.counter.records(bytes);
    }

    fn end(&mut self) {
        let mut report = self.report.lock().unwrap_or_else(|broken| broken.into_inner());
        report.total.add(&self.counter.total());
        report.event_bytes += self.counter.bytes;
        let threads = report.processes.entry(self.process).or_default();
        for (thread, counts) in &self.counter.threads {
            threads.entry(*thread).or_default().add(counts);
        }
    }
}

impl Count {
    /// Runs the program and prints what it executed.
    pub fn run(self) -> anyhow::Result<Exit> {
        let report = Arc::new(Mutex::new(Report::default()));
        let plan = Plan { blocks: true, memory: true, ..Plan::default() };
        let outcome = self.guest.run(plan, &mut |process| {
            let report = report.clone();
            Box::new(Reporting { process, counter: Counter::default(), report })
        })?;
        let report = report.lock().unwrap_or_else(|broken| broken.into_inner());
        let text = if self.json { serde_json::to_string(&*report)? + "\n" } else { table(&report) };
        match &self.output {
            Some(path) => std::fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display()))?,
            None if self.json => std::io::stdout().write_all(text.as_bytes())?,
            None => std::io::stderr().write_all(text.as_bytes())?,
        }
        Ok(self.guest.exit(&outcome))
    }
}

fn table(report: &Report) -> String {
    let mut text = String::new();
    let total = &report.total;
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
    let threads: usize = report.processes.values().map(BTreeMap::len).sum();
    if threads > 1 {
        for (process, threads) in &report.processes {
            for (thread, counts) in threads {
                let count = counts.instructions;
                text +=
                    &format!("{count:>16}  instructions of process {process}, thread {thread}\n");
            }
        }
    }
    text
}
