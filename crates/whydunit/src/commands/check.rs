//! `whydunit check`: bug rules over a recording.

use super::rules::{RuleArguments, Watch};
use super::run::fault_or_input;
use crate::exit::Exit;
use crate::render::style::Style;
use crate::render::{self, Output};
use anyhow::Context;
use engine::report::ModuleMap;
use events::Discard;
use recording::log::{self, Entry};
use replay::{Session, Shown};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `whydunit check`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit record -o run.wd -- ./prog
  whydunit check run.wd --rules memory,uninitialised
  whydunit check run.wd --rules mine.rule --json

Exit codes: 0 nothing was found, 1 findings, 2 wrong arguments or rules, or an unusable recording,
70 a fault of our own. More in docs/check.md.")]
pub struct Check {
    /// The recording
    file: PathBuf,
    #[command(flatten)]
    rules: RuleArguments,
    /// Which process; the first by default
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
        let chosen = self.rules.choose()?;
        anyhow::ensure!(!chosen.rules.is_empty(), "no rules are chosen; try `--rules memory`");
        let unusable = || format!("{} cannot be checked", self.file.display());
        let session = Session::open(&self.file).with_context(unusable)?;
        let first = session.recording().processes().first().map(|start| start.process);
        let process =
            self.process.or(first).with_context(|| format!("{}: no process", unusable()))?;
        let watch = Watch::new(&chosen);
        for map in mapped(&session, process)? {
            watch.mapped(&map);
        }
        let mut make = |_| watch.consumer().unwrap_or_else(|| Box::new(Discard::default()));
        let replayed = session
            .replay(process, watch.plan_by_address(), Shown::Nothing, &mut make)
            .map_err(fault_or_input)?;
        if let Some(divergence) = &replayed.divergence {
            render::note(&format!("the replay went another way: {}", divergence.what));
        }
        let found = watch.finish(&chosen, &[]);
        let style = Style::of(&std::io::stderr());
        let text = if self.json {
            render::json::render("check", json!({}), found.findings.clone())
        } else {
            let all: Vec<String> =
                found.findings.iter().map(|one| render::finding::render(one, style)).collect();
            all.join("\n")
        };
        Output::of(self.output.as_deref(), self.json)?.write(&text)?;
        render::rules::epilogue(&found, &chosen)?;
        Ok(match (found.findings.is_empty(), chosen.exit_code) {
            (true, _) => Exit::Clean,
            (false, Some(code)) => Exit::Guest(code),
            (false, None) => Exit::Findings,
        })
    }
}

/// Every piece of a file that the process has mapped. How long one is, its log does not say.
fn mapped(session: &Session, process: u32) -> anyhow::Result<Vec<ModuleMap>> {
    let mut maps = Vec::new();
    let mut answer = 0;
    for (entry, _) in log::entries(session.recording().log(process)?) {
        match entry {
            Entry::Image(image) => {
                for mapping in image.mappings {
                    let Some(path) = mapping.path else { continue };
                    let (start, end, offset) = (mapping.start, mapping.end, mapping.offset);
                    maps.push(ModuleMap { start, end, offset, path });
                }
            }
            Entry::Call(call) => answer = call.answer,
            Entry::Mapped { path, view } => {
                let (start, offset) = (answer as u64, view.offset);
                let end = start.saturating_add(view.size.saturating_sub(offset));
                maps.push(ModuleMap { start, end, offset, path });
            }
            _ => {}
        }
    }
    Ok(maps)
}
