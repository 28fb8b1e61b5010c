//! `whydunit extract`: a self-contained region out of a longer recording.

use crate::exit::Exit;
use crate::render::{self, Output};
use anyhow::bail;
use base::Moment;
use investigate::Case;
use investigate::error::of_recording;
use investigate::moments;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `whydunit extract`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit extract long.whydunit --from parse#3 --to crash -o short.whydunit

Exit codes: 0 done; 2 wrong arguments, or the recording cannot be used; 70 a fault of our own. More in
docs/record.md.")]
pub struct Extract {
    /// The recording
    file: PathBuf,
    /// First moment, such as PLACE#N or @TICK
    #[arg(long, value_name = "MOMENT")]
    from: Moment,
    /// Last moment; the end if not given
    #[arg(long, value_name = "MOMENT", default_value = "end")]
    to: Moment,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Print what was written as JSON to standard output
    #[arg(long)]
    json: bool,
    /// Overwrite a file that is there
    #[arg(short, long)]
    force: bool,
    /// Which process, by its number in `whydunit info`; the one that failed, or the program, if not given
    #[arg(long, value_name = "N")]
    process: Option<u32>,
}

impl Extract {
    /// Cuts.
    pub fn run(self) -> anyhow::Result<Exit> {
        let case = Case::open(&self.file, render::notices())?;
        let process = case.process(self.process)?;
        let mut line = case.timeline(process)?;
        let mut at = |moment: &Moment| {
            moments::seek(&case, process, &mut line, moment).map(|there| there.instant())
        };
        let from = at(&self.from)?;
        let to = (self.to != Moment::END).then(|| at(&self.to)).transpose()?;
        if to.is_some_and(|to| to.time < from.time) {
            bail!("the region would end before it begins");
        }
        let region = (from, to);
        let size = replay::extract(case.session(), &mut line, region, &self.output, self.force)
            .map_err(|error| of_recording(&self.output, error))?;
        match self.json {
            true => {
                let result = json!({ "file": self.output, "bytes": size });
                Output::Standard.write(&report::json::result("extract", result))?;
            }
            false => render::note(&format!("wrote {} ({size} bytes)", self.output.display())),
        }
        Ok(Exit::Clean)
    }
}
