//! `whydunit info`: what is in a recording. Nothing of it is executed.

use crate::exit::Exit;
use crate::render::Output;
use anyhow::{Context, anyhow};
use investigate::contents::Contents;
use recording::{Completeness, Recording};
use std::path::PathBuf;

/// Arguments of `whydunit info`.
#[derive(clap::Args)]
#[command(after_help = "\
Every byte of the file is read and compared with its checksum.

Examples:
  whydunit info prog.wd          what was recorded, and how each process ended
  whydunit info --json prog.wd   the same for a script

Exit codes: 0 the recording is complete; 1 it is cut short or damaged, and what is said holds for the
part before that; 2 wrong arguments, or it is no recording that can be read. The fields of --json:
docs/record.md.")]
pub struct Info {
    /// The recording
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Info {
    /// Reads the recording and tells what is in it.
    pub fn run(self) -> anyhow::Result<Exit> {
        let name = self.file.display().to_string();
        let mut output = Output::answer(self.output.as_deref(), self.json)?;
        let recording = Recording::open(&self.file).map_err(|error| anyhow!("{name} {error}"))?;
        let state = recording.verify().with_context(|| format!("cannot read {name}"))?;
        let contents = Contents::of(&recording, &state, name);
        let text = if self.json {
            report::json::result("info", &contents)
        } else {
            report::contents::page(&contents, output.style())
        };
        output.write(&text)?;
        Ok(if state == Completeness::Whole { Exit::Clean } else { Exit::Findings })
    }
}
