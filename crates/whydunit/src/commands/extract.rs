//! `whydunit extract`: a self-contained region out of a longer recording.

use super::moments::Moment;
use super::run::fault_or_input;
use crate::exit::Exit;
use crate::render;
use anyhow::{Context, bail};
use replay::{RecordError, Session};
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
    /// First moment: PLACE[#N] or @TICKS
    #[arg(long, value_name = "MOMENT")]
    from: Moment,
    /// Last moment; the end if not given
    #[arg(long, value_name = "MOMENT", default_value = "end")]
    to: Moment,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite a file that is there
    #[arg(short, long)]
    force: bool,
    /// Which process, by its number in `whydunit info`
    #[arg(long, value_name = "N", default_value_t = 0)]
    process: u32,
}

impl Extract {
    /// Cuts.
    pub fn run(self) -> anyhow::Result<Exit> {
        let session = Session::open(&self.file)
            .with_context(|| format!("{} cannot be replayed", self.file.display()))?;
        let mut line = session.timeline(self.process).map_err(fault_or_input)?;
        let from = self.from.find(&mut line)?.instant();
        let to = match self.to {
            Moment::End => None,
            moment => Some(moment.find(&mut line)?.instant()),
        };
        if to.is_some_and(|to| to.time < from.time) {
            bail!("the region would end before it begins");
        }
        let size = match replay::extract(&session, &mut line, (from, to), &self.output, self.force)
        {
            Ok(size) => size,
            Err(RecordError::Run(error)) => return Err(fault_or_input(error)),
            Err(RecordError::Write(error)) => bail!("{}: {error}", self.output.display()),
        };
        render::note(&format!("wrote {} ({size} bytes)", self.output.display()));
        Ok(Exit::Clean)
    }
}
