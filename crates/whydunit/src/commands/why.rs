//! `whydunit why`: how a program ended, and the chain back to where the wrong value was made.

mod about;

use super::run::Guest;
use crate::exit::Exit;
use crate::render::progress::Bar;
use crate::render::{self, Output};
use analyze::slice::explain::Explanation;
use analyze::slice::view::Statement;
use base::{Finding, Place, When};
use investigate::diagnosis::{Loop, Shown, Wanted};
use investigate::ending::Class;
use investigate::ending::hang::Hang;
use investigate::ending::words::Said;
use investigate::slicing::recursion::Endless;
use investigate::slicing::windows;
use investigate::{Case, Diagnosis};
use report::shell;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `whydunit why`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit why -- ./prog input               runs it and explains how it ended
  whydunit why --json -- ./prog input
  whydunit why --timeout 5 -- ./prog input   what it was doing when it did not end
  whydunit why --format markdown -o bug.md -- ./prog input
  whydunit why prog.whydunit                 explains a recording
  whydunit why --output 'total 11030' -- ./prog   where that text came from
  whydunit why --not parse.c:120 -- ./prog        what kept it from there

Exit codes: 0 the program ended by itself with exit code 0; 1 it did not; 2 wrong arguments or
input; 70 a fault of our own. More in docs/why.md.")]
pub struct Why {
    /// Show all statements
    #[arg(long)]
    all: bool,
    /// Most memory for what is kept of a recording; the rest is replayed again
    #[arg(long, value_name = "SIZE", value_parser = windows::size, default_value_t = windows::MEMORY)]
    memory: u64,
    /// Go back through a long run for about so many seconds; only its last part is looked at if not given
    #[arg(long, value_name = "SECONDS")]
    budget: Option<u64>,
    /// Print JSON, alone on standard output; the same as `--format json`
    #[arg(long)]
    json: bool,
    /// How to write the answer: `markdown` is for bug reports
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the answer to a file
    #[arg(short, long = "output-file", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the crash, if there was one, to a file as SARIF
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Which process, by its number in `whydunit info`; the one that failed, or the program, if not given
    #[arg(long, value_name = "N")]
    process: Option<u32>,
    #[command(flatten)]
    about: about::About,
    #[command(flatten)]
    guest: Guest,
}

/// How the answer is written.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Markdown,
}

#[derive(Serialize)]
struct Report<'a> {
    ended: &'a str,
    class: Class,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<&'a Said>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<When>,
    stack: &'a [Place],
    values: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    recursion: Option<&'a Endless>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hang: Option<&'a Hang>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endless_loop: Option<&'a Loop>,
    /// Rules that were broken before a crash, the first one first.
    #[serde(skip_serializing_if = "<[Finding]>::is_empty")]
    broken: &'a [Finding],
    question: &'a str,
    /// How many windows of how many were looked at, if not all of the run was.
    #[serde(skip_serializing_if = "Option::is_none")]
    windows: Option<(usize, usize)>,
    /// What the text shows: numbers of statements, and values in them.
    shown: &'a [Shown],
    #[serde(flatten)]
    explanation: &'a Explanation,
}

impl<'a> Report<'a> {
    fn of(diagnosis: &'a Diagnosis) -> Self {
        Self {
            ended: &diagnosis.ended,
            class: diagnosis.class,
            fingerprint: diagnosis.fingerprint(),
            said: diagnosis.said.as_ref(),
            place: diagnosis.place.as_ref(),
            when: diagnosis.when,
            stack: &diagnosis.stack,
            values: &diagnosis.values,
            recursion: diagnosis.recursion.as_ref(),
            hang: diagnosis.hang.as_ref(),
            endless_loop: diagnosis.looping.as_ref(),
            broken: &diagnosis.broken,
            question: diagnosis.question().map_or("", |asked| &asked.words),
            windows: diagnosis.execution.observed.filter(|(seen, all)| seen < all),
            shown: &diagnosis.shown,
            explanation: &diagnosis.explanation,
        }
    }
}

impl Why {
    /// Runs the program and explains its end.
    pub fn run(self) -> anyhow::Result<Exit> {
        let format = if self.json { Format::Json } else { self.format };
        let mut output = Output::answer(self.output.as_deref(), format == Format::Json)?;
        let case = Case::of(self.guest.job(), render::notices())?;
        let source = |statement: &Statement| report::why::line_of(&statement.place);
        let bar = Bar::default();
        let progress =
            |(done, all): (usize, usize)| bar.at(done, all, "windows of the run, from its end");
        let budget = self.budget.map(Duration::from_secs);
        let wanted = Wanted {
            all: self.all,
            budget,
            progress: &progress,
            ..Wanted::new(self.memory, &source)
        };
        if self.about.is_asked() {
            let (process, json) = (case.process(self.process)?, format == Format::Json);
            return self.about.answer(&case, process, (wanted, json), output);
        }
        let diagnosis = Diagnosis::of(&case, case.process(self.process)?, wanted)?;
        bar.end();
        let command = case.recording().meta().command.iter().map(ToString::to_string);
        let further = self.further(&case, &diagnosis);
        let out = match format {
            Format::Json => {
                let findings = diagnosis.crash();
                report::json::render("why", findings.as_slice(), Report::of(&diagnosis))
            }
            Format::Markdown => {
                report::why::markdown::render(&diagnosis, &shell::line(command), &further)
            }
            Format::Text => report::why::text(&diagnosis, &further, output.style()),
        };
        output.write(&out)?;
        if let Some(path) = &self.sarif {
            let crash: Vec<_> = diagnosis.crash().into_iter().map(|crash| crash.finding).collect();
            super::rules::write(path, &report::rules::sarif(&crash, &[]))?;
        }
        Ok(if diagnosis.has_failed() { Exit::Findings } else { Exit::Clean })
    }

    /// How to go on: what a recording can be asked, or how to get one.
    fn further(&self, case: &Case, diagnosis: &Diagnosis) -> String {
        let at = diagnosis.when.map_or_else(|| "end".to_owned(), |when| when.position.to_string());
        let named = self.guest.command().first().map(PathBuf::from);
        match named.filter(|named| named == case.file()) {
            Some(file) => {
                let file = shell::word(&file.display().to_string());
                format!("whydunit replay {file} --at {at}, or whydunit slice {file}")
            }
            None => {
                "`whydunit record -o FILE -- PROG ARGS` keeps a run; then whydunit why, slice, \
                     check or replay FILE"
                    .to_owned()
            }
        }
    }
}
