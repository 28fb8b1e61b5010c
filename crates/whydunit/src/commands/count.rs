//! `whydunit count`: what a program executes, in numbers.

use super::run::Guest;
use crate::exit::Exit;
use crate::render::{self, Output};
use investigate::count::{Report, count};
use std::collections::BTreeMap;
use std::path::PathBuf;

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

impl Count {
    /// Runs the program and prints what it executed.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut output = Output::of(self.output.as_deref(), self.json)?;
        let (all, outcome) = count(|plan, make| self.guest.run(plan, make))?;
        let report = Report::of(&all);
        let text = if self.json { render::json::result("count", &report) } else { table(&report) };
        self.guest.report(&outcome, &mut Output::Error, false)?;
        output.write(&text)?;
        Ok(self.guest.exit(&outcome))
    }
}

/// Counts as text.
pub fn table(report: &Report) -> String {
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
