//! `whydunit run`: a program under the engine, with the chosen rules.

mod functions;
mod observe;

use crate::exit::{Exit, OurFault};
use crate::render::run::RunReport;
use crate::render::style::Style;
use crate::render::{self, Output};
use anyhow::Context;
use engine::config::Children;
use engine::host::{self, Ending, Job, Outcome, RunError};
use events::count::Counter;
use events::file::Writer;
use events::{Consumer, Discard, Plan};
use observe::{Changing, Observe};
use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Arguments of `whydunit run`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit run -- ./prog -v input.txt        if it crashes, say where and why on standard error
  whydunit run --json -o why.json -- ./prog  the same as data
  whydunit run --exit-code=guest -- ./prog   end with the program's own exit code

Exit codes: 0 the program ended by itself, whatever its own exit code; 1 it or a child of it was
ended by a signal; 2 wrong arguments, or it cannot be run; 70 a fault of our own. More in
docs/run.md.")]
pub struct Run {
    /// Rules to check; only `none` exists today
    #[arg(long, value_enum, default_value = "none", hide_possible_values = true)]
    rules: Rules,
    /// Print the report as JSON to standard output, also if nothing happened
    #[arg(long)]
    json: bool,
    /// Write the report to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    guest: Guest,
    #[command(flatten)]
    observe: Observe,
    /// Save the events of the first process to a file
    #[arg(long, value_name = "FILE")]
    save_events: Option<PathBuf>,
    /// Count instructions and bytes of events that are not saved, and write that to a file, as JSON
    #[arg(long, value_name = "FILE", hide = true)]
    stats: Option<PathBuf>,
}

/// What every command that runs a program takes.
#[derive(clap::Args)]
pub struct Guest {
    /// Whose exit code to end with: `tool` (0 clean, 1 findings) or `guest`
    #[arg(long, value_enum, default_value = "tool")]
    exit_code: ExitCodeOf,
    /// Whether children of the program run under the engine too
    #[arg(long, value_enum, default_value = "follow")]
    children: ChildrenArgument,
    /// Most instructions of one translation (for experiments)
    #[arg(long, hide = true, default_value_t = 64)]
    superblock: usize,
    /// Program and arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG ARGS")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Rules {
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExitCodeOf {
    Tool,
    Guest,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ChildrenArgument {
    Follow,
    Native,
}

impl Run {
    /// Runs the program.
    pub fn run(self) -> anyhow::Result<Exit> {
        let Rules::None = self.rules;
        let mut file = self.save_events.as_deref().map(save_to).transpose()?;
        let stats = Arc::new(Mutex::new(Stats::default()));
        let measured = self.stats.is_some();
        let mut next = self.observe.next_plan()?;
        let mut job = self.guest.job(self.observe.plan()?);
        job.controlled = next.is_some();
        let outcome = run_job(&job, &mut |_| {
            let consumer: Box<dyn Consumer> = match file.take() {
                Some(writer) => Box::new(writer),
                None if measured => Box::new(Measure(Counter::default(), stats.clone())),
                None => Box::new(Discard::default()),
            };
            Box::new(Changing { consumer, plan: next.take() })
        })?;
        if let Some(path) = &self.stats {
            let stats = stats.lock().unwrap_or_else(PoisonError::into_inner);
            let text = serde_json::to_string(&*stats)? + "\n";
            std::fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.guest.report(&outcome, self.output.as_deref(), self.json)?;
        Ok(self.guest.exit(&outcome))
    }
}

fn save_to(path: &Path) -> anyhow::Result<Writer<BufWriter<File>>> {
    let context = || format!("cannot write {}", path.display());
    let file = File::create(path).with_context(context)?;
    Writer::new(BufWriter::new(file)).with_context(context)
}

/// How much was observed.
#[derive(Default, serde::Serialize)]
struct Stats {
    instructions: u64,
    event_bytes: u64,
}

/// Counts, and adds to what is there when the stream ends.
struct Measure(Counter, Arc<Mutex<Stats>>);

impl Consumer for Measure {
    fn records(&mut self, bytes: &[u8]) {
        self.0.records(bytes);
    }

    fn end(&mut self) {
        let mut stats = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        stats.instructions += self.0.total().instructions;
        stats.event_bytes += self.0.bytes;
    }
}

impl Guest {
    /// What to run, observed by a plan.
    fn job(&self, plan: Plan) -> Job {
        let (program, arguments) = self.command.split_first().expect("clap requires one");
        let mut job = Job::new(program.clone(), arguments.to_vec());
        job.children = match self.children {
            ChildrenArgument::Follow => Children::Follow,
            ChildrenArgument::Native => Children::Native,
        };
        job.superblock_limit = self.superblock.max(1);
        job.resolve = (!plan.names.is_empty()).then(functions::resolver);
        job.plan = plan;
        job
    }

    /// Runs the program, and passes on what the engine wants to say.
    pub fn run(
        &self,
        plan: Plan,
        make: &mut (dyn FnMut(i32) -> Box<dyn Consumer> + Send),
    ) -> anyhow::Result<Outcome> {
        run_job(&self.job(plan), make)
    }

    /// Tells how the run went.
    pub fn report(&self, outcome: &Outcome, file: Option<&Path>, json: bool) -> anyhow::Result<()> {
        let program = self.command.first().map(|name| name.to_string_lossy().into_owned());
        let report = RunReport::of(program.unwrap_or_default(), outcome);
        let style = if file.is_some() { Style::PLAIN } else { Style::of(&std::io::stderr()) };
        let text = if json { report.json()? } else { report.text(style) };
        Output::of(file, json).write(&text)
    }

    /// What to end with.
    pub fn exit(&self, outcome: &Outcome) -> Exit {
        match (self.exit_code, outcome.ending) {
            (ExitCodeOf::Guest, Ending::Exit(code)) => Exit::Guest(code as u8),
            (ExitCodeOf::Guest, Ending::Signal(signal)) => Exit::Guest(128 + signal as u8),
            (ExitCodeOf::Tool, Ending::Signal(_)) => Exit::Findings,
            (ExitCodeOf::Tool, Ending::Exit(_)) if !outcome.crashes.is_empty() => Exit::Findings,
            (ExitCodeOf::Tool, Ending::Exit(_)) => Exit::Clean,
        }
    }
}

/// Runs a job, and passes on what the engine wants to say.
fn run_job(
    job: &Job,
    make: &mut (dyn FnMut(i32) -> Box<dyn Consumer> + Send),
) -> anyhow::Result<Outcome> {
    let outcome = host::run_with(job, make).map_err(fault_or_input)?;
    for note in &outcome.notes {
        render::note(note);
    }
    Ok(outcome)
}

/// Sorts what went wrong into our faults and unusable input.
pub fn fault_or_input(error: RunError) -> anyhow::Error {
    match error {
        RunError::Fault { .. } => OurFault(error.to_string()).into(),
        other => other.into(),
    }
}

/// `whydunit native` (hidden): the guest in the engine's layout, on the bare processor.
#[derive(clap::Args)]
pub struct Native {
    #[command(flatten)]
    guest: Guest,
}

impl Native {
    /// Stops before the guest's first instruction, then runs it natively in this process.
    pub fn run(self) -> anyhow::Result<Exit> {
        match host::become_native(&self.guest.job(Plan::default())).map_err(fault_or_input)? {}
    }
}
