//! `whydunit replay`: a recording again, without the inputs, files, clock and network of that day.

use crate::exit::Exit;
use crate::render::{self, Output};
use anyhow::anyhow;
use base::Moment;
use base::replayed::{ProcessReplay, Replayed};
use engine::listen::MakeConsumer;
use events::{Discard, Plan};
use investigate::count::{self, Counted, Report as Counts};
use investigate::error::fault_or_input;
use investigate::scene::Seen;
use investigate::{Case, moments};
use recording::Recording;
use replay::outputs::Outputs;
use replay::{Session, Shown};
use serde::Serialize;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Arguments of `whydunit replay`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit replay prog.whydunit            what the program wrote, again
  whydunit replay prog.whydunit --check    the same, and say whether it went as recorded
  whydunit replay prog.whydunit --count    count what it executed

Exit codes: 0 as recorded; 1 a replay diverged from the recording or, with --check, the recording is
not complete; 2 wrong arguments, or the file cannot be used; 70 a fault of our own. More in docs/record.md.")]
pub struct Replay {
    /// The recording
    file: PathBuf,
    /// Say how many checks were made and that they held
    #[arg(long)]
    check: bool,
    /// Count instructions, branches, loads, stores
    #[arg(long)]
    count: bool,
    /// Do not show the program's own output again
    #[arg(long)]
    silent: bool,
    /// Only this process, by its number in `whydunit info`
    #[arg(long, value_name = "N")]
    process: Option<u32>,
    /// Go to a moment and show where it is, such as PLACE#N, @TICK, crash or end
    #[arg(long, value_name = "MOMENT", conflicts_with_all = ["check", "count"])]
    at: Vec<Moment>,
    /// List what is in the log in place of replaying it
    #[arg(long, hide = true)]
    entries: bool,
    /// Print the result as JSON to standard output; the program's output is not shown
    #[arg(long)]
    json: bool,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    process: u32,
    #[serde(flatten)]
    replayed: Replayed,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
}

impl Report {
    fn of(replay: ProcessReplay, counts: Option<Counts>) -> Self {
        Self { process: replay.process, replayed: replay.replayed, counts }
    }
}

impl Replay {
    /// Replays.
    pub fn run(self) -> anyhow::Result<Exit> {
        let session = Session::open(&self.file)
            .map_err(|error| anyhow!("{} {error}", self.file.display()))?;
        if !session.recording().is_complete() {
            let state = session.recording().completeness();
            render::note(&format!("{} is not complete: {state}", self.file.display()));
        }
        let numbers: Vec<u32> = match self.process {
            Some(number) => vec![number],
            None => begun(session.recording()),
        };
        let output = Output::answer(self.output.as_deref(), self.json)?;
        if self.entries {
            return list(&session, &numbers);
        }
        if !self.at.is_empty() {
            return self.visit(output);
        }
        let mut reports: Vec<Report> = Vec::new();
        let several = numbers.len() > 1 && !self.silent && !self.json;
        let mut file = several.then(tempfile::tempfile).transpose()?;
        let mut outputs = Outputs::default();
        for process in numbers {
            if reports.iter().any(|report| report.process == process) {
                continue;
            }
            let shown = match &file {
                Some(file) => Shown::File(file.as_raw_fd()),
                None if self.silent || self.json => Shown::Nothing,
                None => Shown::Output,
            };
            reports.extend(self.replay(&session, process, shown)?);
            file.as_mut().map(|file| outputs.take(file)).transpose()?;
        }
        reports.sort_by_key(|report| report.process);
        outputs.write(&mut std::io::stdout(), &mut std::io::stderr())?;
        let diverged = reports.iter().any(|report| report.replayed.divergence.is_some());
        self.show(output, &reports)?;
        let cut = self.check && !session.recording().is_complete();
        Ok(if diverged || cut { Exit::Findings } else { Exit::Clean })
    }

    /// Shows moments.
    fn visit(&self, mut output: Output) -> anyhow::Result<Exit> {
        let case = Case::open(&self.file, render::notices())?;
        let process = case.process(self.process)?;
        let mut line = case.timeline(process)?;
        let mut all = Vec::new();
        for moment in &self.at {
            let standing = moments::seek(&case, process, &mut line, moment)?;
            all.push(Seen::of(&case, process, &standing)?);
        }
        let text = match self.json {
            true => report::json::result("replay", &all),
            false => all.iter().map(report::scene::text).collect(),
        };
        output.write(&text)?;
        Ok(Exit::Clean)
    }

    /// Replays a process, and what it was forked into, too, if nobody asks for one alone.
    fn replay(&self, session: &Session, process: u32, shown: Shown) -> anyhow::Result<Vec<Report>> {
        let replay = |plan, make: MakeConsumer<'_>| {
            let children = self.process.is_none();
            session.replay_processes(process, children, plan, shown, make).map_err(fault_or_input)
        };
        if self.count {
            // It says where a child begins, as what came before is the parent's.
            let replay = |plan: Plan, make: MakeConsumer<'_>| replay(plan.with_forks(), make);
            let (counted, replays) = count::count(replay)?;
            return Ok(with_counts(session.recording(), counted, replays));
        }
        let replays = replay(Plan::default(), &mut |_| Box::new(Discard::default()))?;
        let report = |replay: ProcessReplay| Report::of(replay, None);
        Ok(replays.into_iter().map(report).collect())
    }

    fn show(&self, mut output: Output, reports: &[Report]) -> anyhow::Result<()> {
        if self.json {
            return output.write(&report::json::result("replay", reports));
        }
        for Report { process, replayed, counts } in reports {
            if let Some(divergence) = &replayed.divergence {
                render::note(&format!(
                    "the replay of process {process} diverged from the recording in thread {} at tick {}, \
                     {:#x}: {}",
                    divergence.thread, divergence.time, divergence.pc, divergence.what
                ));
            } else if self.check {
                render::note(&format!(
                    "process {process} went as recorded: {} checks, {} entries, {} ticks",
                    replayed.checks, replayed.entries, replayed.time
                ));
            }
            if let Some(counts) = counts {
                if reports.len() > 1 {
                    eprintln!("process {process}:");
                }
                eprint!("{}", report::count::table(counts));
            }
        }
        Ok(())
    }
}

/// Every process that there is something of, and the first: if there is nothing of that, it is said why.
fn begun(recording: &Recording) -> Vec<u32> {
    let mut all: Vec<u32> = recording.processes().iter().map(|start| start.process).collect();
    all.retain(|process| {
        let begun = *process == 0 || recording.has_begun(*process);
        if !begun {
            render::note(&format!("process {process} was killed before it began"));
        }
        begun
    });
    all
}

/// Each process with what it executed, by the number that it had when it was recorded.
fn with_counts(
    recording: &Recording,
    mut counted: Vec<Counted>,
    replays: Vec<ProcessReplay>,
) -> Vec<Report> {
    let pid = |process: u32| {
        let start = recording.processes().iter().find(|start| start.process == process);
        start.map_or(0, |start| start.pid)
    };
    let report = |replay: ProcessReplay| {
        let own = counted.iter_mut().filter(|counted| counted.process == replay.runner);
        let own = own.map(|counted| {
            counted.process = pid(replay.process);
            &*counted
        });
        let counts = Counts::of(own);
        Report::of(replay, Some(counts))
    };
    replays.into_iter().map(report).collect()
}

/// Lists the entries of logs, one a line.
fn list(session: &Session, processes: &[u32]) -> anyhow::Result<Exit> {
    for process in processes {
        let log = session.recording().log(*process)?;
        for (entry, payload) in recording::log::entries(log) {
            println!("{process} {entry:?} +{}", payload.len());
        }
    }
    Ok(Exit::Clean)
}
