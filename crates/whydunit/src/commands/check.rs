//! `whydunit check`: bug rules over a recording.

use super::rules::RuleArguments;
use crate::exit::Exit;
use crate::render::{self, Output};
use investigate::Case;
use investigate::check::{Chosen, RuleFindings, recorded, screened};
use recording::Recording;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// A run that took as long is checked in a minute or more.
const LONG: Duration = Duration::from_millis(500);

/// Arguments of `whydunit check`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit record -o run.wd -- ./prog
  whydunit check run.wd --rules memory,uninitialised
  whydunit check run.wd --rules mine.rule --json

Exit codes: 0 nothing was found, 1 findings, 2 wrong arguments or rules, or an unusable recording,
3 not decided: the replay diverged from the recording, 70 a fault of our own. More in docs/check.md.")]
pub struct Check {
    /// The recording
    file: PathBuf,
    #[command(flatten)]
    rules: RuleArguments,
    /// Only this process, by its number in `whydunit info`
    #[arg(long)]
    process: Option<u32>,
    /// Print the findings as JSON to standard output
    #[arg(long)]
    json: bool,
    /// Write the findings to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Check {
    /// Replays the recording under the rules.
    pub fn run(self) -> anyhow::Result<Exit> {
        let rules = self.rules.choose()?;
        let chosen = &rules.chosen;
        anyhow::ensure!(!chosen.rules.is_empty(), "no rules are chosen; try `--rules memory`");
        let mut output = Output::of(self.output.as_deref(), self.json)?;
        let case = Case::open(&self.file, render::notices())?;
        let processes: Vec<u32> = match self.process {
            Some(number) => vec![case.process(Some(number))?],
            None => case.processes().iter().map(|start| start.process).collect(),
        };
        anyhow::ensure!(!processes.is_empty(), "{} has no process", self.file.display());
        warn_of_time(case.recording(), chosen);
        let mut found = RuleFindings::default();
        for process in &processes {
            found.extend(recorded::check(case.session(), *process, chosen, case.notices())?);
        }
        let findings = found.findings();
        let text = if self.json {
            let mut result = json!({ "processes": processes });
            if let Some(leaks) = &found.leaks {
                result["leaks"] = json!(leaks);
            }
            report::json::render("check", &findings, result)
        } else {
            report::finding::render_all(&findings, output.style()).join("\n")
        };
        output.write(&text)?;
        rules.epilogue(&found, &findings)?;
        Ok(match (found.is_empty(), rules.exit_code) {
            (true, _) if found.unfollowed || !chosen.missing(&found.functions).is_empty() => {
                Exit::Undecided
            }
            (true, _) => Exit::Clean,
            (false, Some(code)) => Exit::Guest(code),
            (false, None) => Exit::Findings,
        })
    }
}

/// Says before it begins if a check will take minutes.
fn warn_of_time(recording: &Recording, chosen: &Chosen) {
    let took = recording.summary().map_or(0, |summary| summary.duration);
    if Duration::from_nanos(took) >= LONG && !chosen.rules.iter().all(screened::is_light) {
        render::note(
            "a check follows every instruction, which takes some hundred times as long as the program computed; \
             `whydunit run` follows only what is suspicious",
        );
    }
}
