//! `whydunit count`: what a program executes, in numbers.

use super::run::Guest;
use crate::exit::Exit;
use crate::render::Output;
use investigate::count::{Report, count};
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
        let text = if self.json {
            report::json::result("count", &report)
        } else {
            report::count::table(&report)
        };
        self.guest.report(&outcome, &mut Output::Error, false)?;
        output.write(&text)?;
        Ok(self.guest.exit(&outcome))
    }
}
