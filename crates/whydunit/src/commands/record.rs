//! `whydunit record`: a program to its end, crash or kill, and one file from which all of it can be
//! seen again.

use super::run::Guest;
use crate::exit::Exit;
use crate::render::{self, Output};
use anyhow::bail;
use engine::config::{Point, Schedule};
use engine::host::Record as How;
use investigate::error::of_recording;
use investigate::moments;
use replay::Recorded;
use std::path::PathBuf;

/// Arguments of `whydunit record`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit record -- ./prog input.txt                  record to prog.whydunit
  whydunit record -o bug.whydunit -- ./prog input.txt
  whydunit record --schedule random:7 -- ./threads     provoke a rare interleaving
  whydunit replay prog.whydunit --check                all of it again, and compared

Exit codes: 0 recorded; 1 recorded, and the program was ended by a signal; 2 wrong arguments, or it
cannot be recorded; 70 a fault of our own. More in docs/record.md.")]
pub struct Record {
    /// File to write; `PROG.whydunit` if not given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite a file that is there
    #[arg(short, long)]
    force: bool,
    /// Who runs when there are threads: `fair`, `random:SEED` or `pct:DEPTH,SEED`
    #[arg(long, default_value = "fair", value_parser = parse_schedule)]
    schedule: Schedule,
    /// Let threads be interrupted inside blocks too, between any two instructions
    #[arg(long)]
    cut: bool,
    /// Run at full speed to this place of the program, and record from there on
    #[arg(long, value_name = "PLACE[#N]", conflicts_with = "skip")]
    from: Option<String>,
    /// Record until this place is reached, counted from the beginning of the region
    #[arg(long, value_name = "PLACE[#N]", conflicts_with = "length")]
    to: Option<String>,
    /// Run this many ticks (taken backward branches, returns, indirect jumps) before recording
    #[arg(long, value_name = "N")]
    skip: Option<u64>,
    /// Record this many ticks
    #[arg(long, value_name = "N")]
    length: Option<u64>,
    /// Say nothing when it went well
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    guest: Guest,
}

fn parse_schedule(text: &str) -> Result<Schedule, String> {
    let number = |text: &str| text.parse::<u64>().ok();
    let parsed = match text.split_once(':') {
        None if text == "fair" => Some(Schedule::Fair),
        Some(("random", seed)) => number(seed).map(|seed| Schedule::Random { seed }),
        Some(("pct", both)) => both.split_once(',').and_then(|(depth, seed)| {
            Some(Schedule::Pct { depth: depth.parse().ok()?, seed: number(seed)? })
        }),
        _ => None,
    };
    parsed.ok_or_else(|| {
        "a schedule is `fair`, `random:SEED` or `pct:DEPTH,SEED`, such as `random:7`".into()
    })
}

impl Record {
    /// Records.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut job = self.guest.job();
        let point = |moment: &Option<String>, ticks: Option<u64>| match (moment, ticks) {
            (Some(moment), _) => moments::point(moment, &job.program).map(Some),
            (None, ticks) => Ok(ticks.map(Point::Ticks)),
        };
        let (from, to) = (point(&self.from, self.skip)?, point(&self.to, self.length)?);
        job.record = Some(How { schedule: self.schedule, cut: self.cut, from, to });
        let path = self.output.clone().unwrap_or_else(|| self.guest.default_file());
        let recorded = replay::record(&job, &path, self.force || self.output.is_none())
            .map_err(|error| of_recording(&path, error))?;
        let Recorded { outcome, summary, size } = recorded;
        for note in &outcome.notes {
            render::note(note);
        }
        if let Some(why) = &summary.stopped {
            bail!(
                "cannot be recorded any further: {why}; what came before is in {}",
                path.display()
            );
        }
        self.guest.report(&outcome, &mut Output::Error, false)?;
        if !self.quiet {
            let processes = summary.processes.len();
            let calls: u64 = summary.processes.iter().map(|process| process.system_calls).sum();
            render::note(&format!(
                "recorded to {} ({size} bytes, {processes} process{}, {calls} system calls)",
                path.display(),
                if processes == 1 { "" } else { "es" },
            ));
        }
        Ok(self.guest.exit(&outcome))
    }
}
