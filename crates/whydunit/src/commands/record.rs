//! `whydunit record`: a program to its end, crash or kill, and one file from which all of it can be
//! seen again.

use super::expose::parse_points;
use super::run::Guest;
use crate::exit::Exit;
use crate::render::{self, Output};
use anyhow::bail;
use engine::config::{Point, Schedule};
use engine::host::Record as How;
use investigate::error::of_recording;
use investigate::moments;
use replay::Recorded;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `whydunit record`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit record -- ./prog input.txt                  record to prog.whydunit; -f if there is one
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
    /// Who runs when there are threads: `fair`, `random:SEED` or `pct:DEPTH,SEED[,EVENTS]`
    #[arg(long, default_value = "fair", value_parser = parse_schedule)]
    schedule: Schedule,
    /// Let threads be interrupted inside blocks too, between any two instructions
    #[arg(long)]
    cut: bool,
    /// Places where threads may be stopped: addresses, with `+` where they are held (for `expose`)
    #[arg(long, hide = true, value_name = "ADDRESS[+],…")]
    switch_points: Option<String>,
    /// Run at full speed to this place of the program, and record from there on
    #[arg(long, value_name = "PLACE[#N]", conflicts_with_all = ["skip", "layout"])]
    from: Option<String>,
    /// Record until this place is reached, counted from the beginning of the region
    #[arg(long, value_name = "PLACE[#N]", conflicts_with_all = ["length", "layout"])]
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
    /// Print what was recorded as JSON to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    guest: Guest,
}

fn parse_schedule(text: &str) -> Result<Schedule, String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let words = rest.split(',').filter(|word| !word.is_empty());
    let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    let depth = |depth: u64| u32::try_from(depth).unwrap_or(u32::MAX);
    match (kind, &numbers[..]) {
        ("fair", []) if rest.is_empty() => Ok(Schedule::Fair),
        ("random", [seed]) => Ok(Schedule::Random { seed: *seed }),
        ("walk", [seed]) => Ok(Schedule::Walk { seed: *seed }),
        ("pct", [deep, seed]) => Ok(Schedule::Pct { depth: depth(*deep), seed: *seed, events: 0 }),
        ("pct", [deep, seed, events]) => {
            Ok(Schedule::Pct { depth: depth(*deep), seed: *seed, events: *events })
        }
        _ => Err(
            "a schedule is `fair`, `random:SEED`, `walk:SEED` or `pct:DEPTH,SEED[,EVENTS]`, such \
                  as `random:7`"
                .into(),
        ),
    }
}

impl Record {
    /// Records.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut output = Output::of(None, self.json)?;
        let mut job = self.guest.job();
        let point = |moment: &Option<String>, ticks: Option<u64>| match (moment, ticks) {
            (Some(moment), _) => moments::point(moment, &job.program).map(Some),
            (None, ticks) => Ok(ticks.map(Point::Ticks)),
        };
        let (from, to) = (point(&self.from, self.skip)?, point(&self.to, self.length)?);
        if let Some(points) = &self.switch_points {
            job.switch_points = parse_points(points).map_err(anyhow::Error::msg)?;
        }
        job.record = Some(How { schedule: self.schedule, cut: self.cut, from, to });
        let path = self.output.clone().unwrap_or_else(|| self.guest.default_file());
        let recorded =
            replay::record(&job, &path, self.force).map_err(|error| of_recording(&path, error))?;
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
        let processes = summary.processes.len();
        let calls: u64 = summary.processes.iter().map(|process| process.system_calls).sum();
        if self.json {
            let ending = report::run::ending(outcome.ending);
            let result = json!({
                "file": path, "bytes": size, "processes": processes, "system_calls": calls,
                "ending": ending,
            });
            output.write(&report::json::result("record", result))?;
        } else if !self.quiet {
            render::note(&format!(
                "recorded to {} ({size} bytes, {processes} process{}, {calls} system calls)",
                path.display(),
                if processes == 1 { "" } else { "es" },
            ));
        }
        Ok(self.guest.exit(&outcome))
    }
}
