//! `whydunit learn`: what a program does in ordinary runs.

use super::run::Guest;
use crate::exit::Exit;
use crate::render::{self, Output};
use base::Ending;
use investigate::invariants::show::Info;
use investigate::invariants::train;
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

/// Arguments of `whydunit learn`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit learn -o prog.model -- ./prog input          learns from one run
  whydunit learn -o prog.model --inputs tests/ -- ./prog {}   from one run for each file
  whydunit learn -o prog.model one.whydunit two.whydunit      from recordings
  whydunit learn -o prog.model --schedules 20 -- ./threads    from twenty schedules

A model that is there is added to. Exit codes: 0 learned; 2 wrong arguments, an unusable model or
recording, or no run ended well; 70 a fault of our own. More in docs/anomalies.md.")]
pub struct Learn {
    /// The model
    #[arg(short = 'o', long, value_name = "MODEL")]
    model: PathBuf,
    /// Runs to learn from: those after which this shell command succeeds, with the exit code in $EXIT and
    /// the input in $INPUT. Those with exit code 0, if not given
    #[arg(long, value_name = "TEST")]
    good: Option<String>,
    /// One run for each file of a folder, which takes the place of {} in the arguments; or for each line of
    /// a file, which holds arguments
    #[arg(long, value_name = "DIR|LIST")]
    inputs: Option<PathBuf>,
    /// Record each run under so many random schedules of its threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    schedules: u32,
    /// Print what was learned as JSON to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    guest: Guest,
}

impl Learn {
    /// Records the program as often as is asked for, and learns from the recordings.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut output = Output::of(None, self.json)?;
        let known = self.model.exists().then(|| train::load(&self.model)).transpose()?;
        let sources = train::sources(&self.guest.job(), self.inputs.as_deref(), self.schedules)?;
        let progress = render::progress::Bar::of(sources.len());
        let good = |input: &str, ending: Ending| self.is_good(input, ending);
        let heard = |name: &str| progress.step(name);
        let trained = train::train(sources, &good, &heard, &render::notices());
        progress.end();
        let trained = trained?;
        let mut model = known.unwrap_or_else(|| invariants::Model::new(&trained.model.program));
        train::add(&mut model, &trained.model)?;
        train::save(&model, &self.model)?;
        let info = Info::of(&model);
        output.write(&match self.json {
            true => {
                let left_out = &trained.left_out;
                let result = json!({ "model": info, "runs": trained.runs, "left_out": left_out });
                report::json::result("learn", result)
            }
            false => report::model::learned(&trained, &info),
        })?;
        Ok(Exit::Clean)
    }

    fn is_good(&self, input: &str, ending: Ending) -> bool {
        let Some(test) = &self.good else { return ending == Ending::Exit(0) };
        let code = match ending {
            Ending::Exit(code) => code & 0xff,
            Ending::Signal(signal) => 128 + signal,
        };
        let mut shell = Command::new("sh");
        shell.args(["-c", test]).env("EXIT", code.to_string()).env("INPUT", input);
        shell.status().is_ok_and(|status| status.success())
    }
}
