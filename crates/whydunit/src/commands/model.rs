//! `whydunit model`: reads, merges and compares models.

use crate::exit::Exit;
use crate::render::Output;
use base::PlaceName;
use clap::Subcommand;
use investigate::invariants::show::{self, Info};
use investigate::invariants::train;
use std::path::PathBuf;

/// Arguments of `whydunit model`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit model info prog.model
  whydunit model show prog.model parse.c:31
  whydunit model merge -o all.model one.model two.model
  whydunit model diff old.model new.model

Exit codes: 0; 1 `diff` found differences; 2 wrong arguments, or a model that cannot be used. More in
docs/anomalies.md.")]
pub struct ModelCommand {
    #[command(subcommand)]
    action: Action,
}

/// How and where to the answer is given.
#[derive(clap::Args)]
struct Form {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Action {
    /// Tell what is in a model, in numbers
    Info {
        /// The model
        model: PathBuf,
        #[command(flatten)]
        form: Form,
    },
    /// Show the invariants of a place
    Show {
        /// The model
        model: PathBuf,
        /// FILE:LINE or FUNCTION
        place: PlaceName,
        #[command(flatten)]
        form: Form,
    },
    /// Put models of one program together
    Merge {
        /// Where the merged model goes
        #[arg(short, long, value_name = "MODEL")]
        output: PathBuf,
        /// The models
        #[arg(required = true)]
        models: Vec<PathBuf>,
    },
    /// Tell what one model has that another has not
    Diff {
        /// The model before
        before: PathBuf,
        /// The model after
        after: PathBuf,
        #[command(flatten)]
        form: Form,
    },
}

impl ModelCommand {
    /// Does what is asked for.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.action {
            Action::Info { model, form } => {
                let info = Info::of(&train::load(&model)?);
                form.answer(&info, "model info", report::model::info)?;
            }
            Action::Show { model, place, form } => {
                let shown = show::show(&train::load(&model)?, &place)?;
                form.answer(&shown, "model show", |shown| report::model::shown(shown))?;
            }
            Action::Merge { output, models } => merge(&output, &models)?,
            Action::Diff { before, after, form } => {
                let difference = show::difference(&train::load(&before)?, &train::load(&after)?);
                form.answer(&difference, "model diff", report::model::difference)?;
                let same = difference.new + difference.gone + difference.changed.len() == 0;
                return Ok(if same { Exit::Clean } else { Exit::Findings });
            }
        }
        Ok(Exit::Clean)
    }
}

impl Form {
    fn answer<T: serde::Serialize>(
        &self,
        what: &T,
        command: &str,
        text: impl Fn(&T) -> String,
    ) -> anyhow::Result<()> {
        let mut output = Output::answer(self.output.as_deref(), self.json)?;
        output.write(&if self.json { report::json::result(command, what) } else { text(what) })
    }
}

fn merge(output: &std::path::Path, models: &[PathBuf]) -> anyhow::Result<()> {
    let mut merged = train::load(&models[0])?;
    for path in &models[1..] {
        train::add(&mut merged, &train::load(path)?)?;
    }
    train::save(&merged, output)
}
