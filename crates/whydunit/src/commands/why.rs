//! `whydunit why`: how a program ended, and the chain back to where the wrong value was made.

use super::run::Guest;
use crate::exit::Exit;
use crate::render::{self, Output, shell};
use analyze::slice::explain::Explanation;
use investigate::slicing::recursion::Endless;
use investigate::slicing::windows;
use investigate::{Case, Diagnosis};
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `whydunit why`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit why -- ./prog input               runs it and explains how it ended
  whydunit why --json -- ./prog input
  whydunit why prog.whydunit                 explains a recording

Exit codes: 0 the program ended by itself with exit code 0; 1 it did not; 2 wrong arguments or
input; 70 a fault of our own. More in docs/why.md.")]
pub struct Why {
    /// Show all statements
    #[arg(long)]
    all: bool,
    /// Most memory for what is kept of a recording; the rest is replayed again
    #[arg(long, value_name = "SIZE", value_parser = windows::size, default_value_t = windows::MEMORY)]
    memory: u64,
    /// Print JSON, alone on standard output
    #[arg(long)]
    json: bool,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Which process, by its number in `whydunit info`; the one that failed, or the program, if not given
    #[arg(long, value_name = "N")]
    process: Option<u32>,
    #[command(flatten)]
    guest: Guest,
}

#[derive(Serialize)]
struct Report<'a> {
    ended: &'a str,
    values: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    recursion: Option<&'a Endless>,
    question: &'a str,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

impl<'a> Report<'a> {
    fn of(diagnosis: &'a Diagnosis) -> Self {
        Self {
            ended: &diagnosis.ended,
            values: &diagnosis.values,
            recursion: diagnosis.recursion.as_ref(),
            question: &diagnosis.question().words,
            explanation: &diagnosis.explanation,
        }
    }
}

impl Why {
    /// Runs the program and explains its end.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut output = Output::answer(self.output.as_deref(), self.json)?;
        let case = Case::of(self.guest.job(), render::notices())?;
        let diagnosis = Diagnosis::of(&case, case.process(self.process)?, self.memory)?;
        let out = if self.json {
            let findings = diagnosis.crash();
            render::json::render("why", findings.as_slice(), Report::of(&diagnosis))
        } else {
            let command = self.guest.command().iter().map(|part| part.to_string_lossy());
            render::why::text(&diagnosis, self.all, &shell::line(command), output.style())
        };
        output.write(&out)?;
        Ok(if diagnosis.has_failed() { Exit::Findings } else { Exit::Clean })
    }
}
