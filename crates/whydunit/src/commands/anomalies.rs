//! `whydunit anomalies`: where a run left what is ordinary.

use super::run::Guest;
use crate::exit::Exit;
use crate::render::{self, Output};
use ::invariants::Model;
use investigate::Case;
use investigate::invariants::report::{self, Filter, KINDS};
use investigate::invariants::{self, train};

use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Arguments of `whydunit anomalies`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit anomalies prog.model -- ./prog input    runs it and tells what no run before did
  whydunit anomalies prog.model prog.whydunit      of a recording
  whydunit anomalies prog.model --last 5 -- ./prog the five nearest to the end
  whydunit anomalies prog.model --min 100 --kind new-value --function parse -- ./prog input

Exit codes: 0 nothing above the threshold; 1 anomalies; 2 wrong arguments, or a model or recording
that cannot be used; 70 a fault of our own. What a confidence means: docs/anomalies.md.")]
pub struct Anomalies {
    /// The model; `-` for none: then the earlier part of the run is what the later is held against
    model: PathBuf,
    /// Show so many, the most noteworthy first
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Show so many, those nearest to the end of the run
    #[arg(long, value_name = "N", conflicts_with = "top")]
    last: Option<usize>,
    /// Leave out what costs less confidence
    #[arg(long, value_name = "CONFIDENCE", default_value_t = report::THRESHOLD)]
    min: f64,
    /// The confidence that code is given which never ran
    #[arg(long, value_name = "CONFIDENCE", default_value_t = report::NEW_CODE)]
    new_code: f64,
    /// Only these kinds of findings
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kinds())]
    kind: Vec<String>,
    /// Only in this source file
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Only in this function
    #[arg(long, value_name = "FUNCTION")]
    function: Option<String>,
    /// Only on this line
    #[arg(long, value_name = "LINE")]
    line: Option<u32>,
    /// Only about this variable or called function
    #[arg(long, value_name = "NAME")]
    about: Option<String>,
    /// Only in this thread
    #[arg(long, value_name = "N")]
    thread: Option<u32>,
    /// Show when in the run anomalies came up
    #[arg(long)]
    plot: bool,
    /// Learn from this run, too: what it did is expected from now on
    #[arg(long)]
    accept: bool,
    /// Which process, by its number in `whydunit info`; the one that failed, or the program, if not given
    #[arg(long, value_name = "N")]
    process: Option<u32>,
    /// Print the anomalies as JSON to standard output
    #[arg(long)]
    json: bool,
    /// Print the anomalies as SARIF to standard output
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    guest: Guest,
}

fn kinds() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(KINDS.map(|(kind, _)| kind))
}

impl Anomalies {
    /// Runs the program, or takes a recording of it, and tells what is new.
    pub fn run(self) -> anyhow::Result<Exit> {
        let known = (self.model != Path::new("-")).then(|| train::load(&self.model)).transpose()?;
        let mut output = Output::answer(self.output.as_deref(), self.json || self.sarif)?;
        let case = Case::of(self.guest.job(), render::notices())?;
        let process = case.process(self.process)?;
        let fresh = || Model::new(invariants::program_name(&case, process));
        let mut model = known.unwrap_or_else(fresh);
        let watched = invariants::check(&case, process, &model, self.new_code)?;
        let shown = self.last.unwrap_or(self.top);
        let mut told = report::findings(&case, process, &watched, &self.filter(), shown)?;
        let all = told.len();
        let steps: Vec<(u64, f64)> = told.iter().map(|one| (one.step, one.score)).collect();
        if self.last.is_some() {
            told.sort_by_key(|one| std::cmp::Reverse(one.step));
        }
        told.truncate(shown);
        let (points, new) = watched.learned.points;
        let text = if self.json {
            let runs = model.runs;
            let result =
                json!({ "points": points, "new_points": new, "runs": runs, "anomalies": all });
            ::report::json::render("anomalies", &told, result)
        } else if self.sarif {
            let findings: Vec<_> = told.iter().map(|one| one.finding.clone()).collect();
            ::report::sarif::render(&findings, &BTreeMap::from(KINDS))
        } else {
            let plot = self.plot.then(|| ::report::anomalies::plot(&steps, watched.steps));
            let head = ::report::anomalies::head((told.len(), all), (points, new), &model);
            head + &::report::anomalies::text(&told, output.style()) + &plot.unwrap_or_default()
        };
        output.write(&text)?;
        if self.accept && self.model != Path::new("-") {
            let learned = invariants::learn(&case, process)?;
            train::add(&mut model, &learned.learned.model)?;
            train::save(&model, &self.model)?;
        }
        Ok(if all == 0 { Exit::Clean } else { Exit::Findings })
    }

    fn filter(&self) -> Filter {
        Filter {
            threshold: self.min,
            file: self.file.clone(),
            function: self.function.clone(),
            line: self.line,
            kinds: self.kind.clone(),
            about: self.about.clone(),
            thread: self.thread,
        }
    }
}
