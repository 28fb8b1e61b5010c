//! `whydunit races`: what the threads of a run did to each other.

use super::run::Guest;
use crate::exit::Exit;
use crate::render::{self, Output};
use analyze::races::sync;
use analyze::rules::suppress;
use anyhow::Context;
use investigate::Case;
use investigate::races::linearizable::{self, Answer, Implemented};
use investigate::races::{self, Options};
use linearize::model::Program;
use serde_json::json;
use spec::Source;
use std::path::{Path, PathBuf};

/// Arguments of `whydunit races`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit races -- ./prog input             records it, and tells what its threads did to each other
  whydunit races prog.whydunit               the same of a recording
  whydunit races --unprotected prog.whydunit also what only the order of locks kept apart
  whydunit races --linearize stack.lin --map Push=stack_push --map Pop=stack_pop prog.whydunit
                                             whether an order of the calls explains their results

Exit codes: 0 nothing was found; 1 findings; 2 wrong arguments or input; 3 not decided: the replay
diverged from the recording; 70 a fault of our own. More in docs/races.md.")]
pub struct Races {
    /// Also accesses that are ordered in this run, but only by who took a lock first
    #[arg(long)]
    unprotected: bool,
    /// A file of the program's own functions that order threads, one a line: ROLE FUNCTION (docs/races.md)
    #[arg(long, value_name = "FILE")]
    sync: Option<PathBuf>,
    /// Leave out what a file suppresses: Helgrind's format, or lines of the thread sanitizer's (race:PATTERN)
    #[arg(long, value_name = "FILE")]
    suppressions: Vec<PathBuf>,
    /// Judge the calls of a data structure by a specification (docs/linearize.md) in place of looking for races
    #[arg(long, value_name = "SPEC", requires = "maps")]
    linearize: Option<PathBuf>,
    /// Which function implements an operation: OPERATION=FUNCTION, or with its parameters
    /// OPERATION=FUNCTION(object, v, _); `new` is the operation that makes an object
    #[arg(long = "map", value_name = "OPERATION=FUNCTION", requires = "linearize")]
    maps: Vec<String>,
    /// Print the findings as JSON to standard output
    #[arg(long)]
    json: bool,
    /// Write the findings to a file as SARIF
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write the findings to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Which process, by its number in `whydunit info`; the one that failed, or the program, if not given
    #[arg(long, value_name = "N")]
    process: Option<u32>,
    #[command(flatten)]
    guest: Guest,
}

impl Races {
    /// Looks at a recording, made first if there is only a program.
    pub fn run(self) -> anyhow::Result<Exit> {
        let judged = self.linearize.as_deref().map(|path| self.specification(path)).transpose()?;
        let options = self.options()?;
        let mut output = Output::of(self.output.as_deref(), self.json)?;
        let case = Case::of(self.guest.job(), render::notices())?;
        let process = case.process(self.process)?;
        if let Some((specification, implemented)) = judged {
            let answer = linearizable::find(&case, process, &specification, &implemented)?;
            return self.judged(&answer, &mut output);
        }
        let found = races::find(&case, process, &options)?;
        let text = if self.json {
            let facts = json!({
                "process": process, "threads": found.threads, "suppressed": found.suppressed,
                "left_out": found.left_out,
            });
            report::json::render("races", &found.findings, facts)
        } else {
            report::finding::render_all(&found.findings, output.style()).join("\n")
        };
        output.write(&text)?;
        if let Some(path) = &self.sarif {
            super::rules::write(path, &report::rules::sarif(&found.findings, &[]))?;
        }
        if let Some(why) = &found.cut_short {
            render::note(&format!("what came after is not looked at: {why}"));
        }
        if found.left_out > 0 {
            render::note(&format!(
                "the threads share too much memory: {} accesses were not looked at",
                found.left_out
            ));
        }
        if found.suppressed > 0 {
            render::note(&format!("suppressed as known: {}", found.suppressed));
        }
        let (count, threads) = (found.findings.len(), found.threads);
        render::note(&match count {
            0 if self.unprotected => format!("nothing found among {threads} threads of this run"),
            // Silence is a promise: what was not looked at is said.
            0 => format!(
                "nothing found among {threads} threads of this run; accesses that only the order of locks \
                 kept apart were not looked at (--unprotected)"
            ),
            1 => format!("1 finding among {threads} threads of this run"),
            _ => format!("{count} findings among {threads} threads of this run"),
        });
        Ok(match (count, found.cut_short) {
            (0, Some(_)) => Exit::Undecided,
            (0, None) => Exit::Clean,
            _ => Exit::Findings,
        })
    }

    fn options(&self) -> anyhow::Result<Options> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let at = |path: &Path, error: String| anyhow::anyhow!("{}: {error}", path.display());
        let mut options = Options { unprotected: self.unprotected, ..Options::default() };
        if let Some(path) = &self.sync {
            options.sync = sync::read(&read(path)?).map_err(|error| at(path, error))?;
        }
        for path in &self.suppressions {
            let known = suppress::read_any(&read(path)?).map_err(|error| at(path, error))?;
            options.suppressions.extend(known);
        }
        Ok(options)
    }

    /// The specification, and which functions implement it: read before anything is recorded.
    fn specification(&self, path: &Path) -> anyhow::Result<(Program, Vec<Implemented>)> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
        let source = Source::new(name, String::from_utf8_lossy(&bytes));
        Ok((linearizable::specification(&source)?, linearizable::implemented(&self.maps)?))
    }

    fn judged(&self, answer: &Answer, output: &mut Output) -> anyhow::Result<Exit> {
        let Answer { findings, objects, calls, undecided } = answer;
        output.write(&if self.json {
            let facts = json!({ "objects": objects, "calls": calls, "undecided": undecided });
            report::json::render("races", findings, facts)
        } else {
            report::finding::render_all(findings, output.style()).join("\n")
        })?;
        if let Some(path) = &self.sarif {
            super::rules::write(path, &report::rules::sarif(findings, &[]))?;
        }
        let (exit, what) = match (findings.len(), undecided) {
            (0, 0) if *calls == 0 => (Exit::Undecided, "nothing was judged".into()),
            (0, 0) => (Exit::Clean, "an order of the operations explains all results".into()),
            (0, lost) => (Exit::Undecided, format!("too many orders to follow, of {lost}")),
            (found, _) => (Exit::Findings, format!("no order explains the results, of {found}")),
        };
        render::note(&format!("calls seen: {calls}, objects: {objects}; {what}"));
        Ok(exit)
    }
}
