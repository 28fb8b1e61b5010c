//! `whydunit run`: a program under the engine, with the chosen rules.

mod observe;
mod saving;

use super::rules::{RuleArguments, Rules};
use crate::exit::Exit;
use crate::render::{self, Output};
use engine::config::{Children, Layout};
use engine::host::{self, Ending, Job, Outcome};
use engine::log_listen::EventSinks;
use events::count::Counter;
use events::{Consumer, Discard, Plan};
use investigate::check::coverage::Coverage;
use investigate::check::leaks::is_leak;
use investigate::check::screened::{self, Patience};
use investigate::check::windows::WindowLimits;
use investigate::check::{RuleFindings, Watch, invalid_calls};
use investigate::error::fault_or_input;
use investigate::functions;
use observe::{Changing, Observe};
use report::run::RunReport;
use saving::Saving;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Arguments of `whydunit run`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit run -- ./prog -v input.txt        memory bugs, and where and why it crashes, if it does
  whydunit run --json -o why.json -- ./prog  the same as data
  whydunit run --rules all -- ./prog         every rule, followed in full: slow
  whydunit run --rules none -- ./prog        no rules: as fast as it gets, crashes are explained
  whydunit run --exit-code=guest -- ./prog   end with the program's own exit code

Exit codes: 0 no rule found anything and the program ended by itself, whatever its own exit code; 1 a
rule found something, or a signal ended the program or a child of it; 2 wrong arguments, or it cannot be
run; 3 something was suspicious in a long run and could not be decided; 70 a fault of our own. docs/run.md.")]
pub struct Run {
    #[command(flatten)]
    rules: RuleArguments,
    /// Test accesses inline, and check the rules on a replay only if something is suspicious: fast,
    /// but not all that the rules say can be seen so (docs/screening.md). Without `--rules` this is the way
    #[arg(long)]
    screen: bool,
    /// Follow so many ticks (branches, roughly) from the beginning in full, screened or not: short runs are
    /// then checked as a whole [default: 262144, some four million instructions; 0 with `--screen`]
    #[arg(long, value_name = "TICKS")]
    follow: Option<u64>,
    /// Follow a suspicious run in full if it took less than so many seconds of processor time, else only
    /// what led to suspicions [default: 0; no limit with `--screen`]
    #[arg(long, value_name = "SECONDS")]
    patience: Option<u32>,
    /// Follow at most so many ticks (branches, roughly) of what led there [default: 8388608]
    #[arg(long, value_name = "TICKS")]
    window: Option<u64>,
    /// Suspect the run at so many moments without any reason (for tests)
    #[arg(long, value_name = "MOMENTS", hide = true, default_value_t = 0)]
    suspect: u64,
    /// Say at the end what was checked, and what was not
    #[arg(short, long)]
    verbose: bool,
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
    /// End the program after so many seconds, where it then is; `whydunit why` tells what it was doing
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds)]
    timeout: Option<Duration>,
    /// Where program, heap, stack and mappings go: one of many ways by a number, or any with `native`
    #[arg(long, value_name = "SEED", value_parser = layout)]
    layout: Option<Layout>,
    /// Most instructions of one translation (for experiments)
    #[arg(long, hide = true, default_value_t = 64)]
    superblock: usize,
    /// Program and arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG ARGS")]
    command: Vec<OsString>,
}

/// A seed, or this run's own chance.
fn layout(text: &str) -> Result<Layout, String> {
    let chance = || RandomState::new().build_hasher().finish();
    let seed = if text == "native" { Some(chance()) } else { text.parse().ok() };
    seed.map(Layout::of_seed).ok_or_else(|| "a layout is a number, or `native`".to_owned())
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
    /// Whether it is about events and not about bugs.
    fn only_observes(&self) -> bool {
        self.observe.is_asked_for() || self.save_events.is_some() || self.stats.is_some()
    }

    /// Runs the program.
    pub fn run(self) -> anyhow::Result<Exit> {
        let rules = self.rules.choose()?;
        if !(rules.chosen.rules.is_empty() || self.rules.is_default() && self.only_observes()) {
            return self.check(&rules);
        }
        let plan = self.observe.plan()?;
        let mut output = Output::of(self.output.as_deref(), self.json)?;
        let mut next = self.observe.next_plan()?;
        let emits = plan.emits() || next.is_some();
        let saving = self.save_events.as_deref().map(|path| Saving::to(path, emits)).transpose()?;
        let mut saved = saving.as_ref().map(Saving::consumer);
        let stats = Arc::new(Mutex::new(Stats::default()));
        let measured = self.stats.is_some();
        let mut job = self.guest.job();
        job.resolve = plan.has_names().then(functions::resolver);
        job.plan = plan;
        job.controlled = next.is_some();
        let outcome = run_job(&job, &mut |_| {
            let consumer: Box<dyn Consumer> = match saved.take() {
                Some(writer) => Box::new(writer),
                None if measured => Box::new(Measure(Counter::default(), stats.clone())),
                None => Box::new(Discard::default()),
            };
            Box::new(Changing { consumer, plan: next.take() })
        })?;
        if let Some(path) = &self.stats {
            let stats = stats.lock().unwrap_or_else(PoisonError::into_inner);
            let text = serde_json::to_string(&*stats)? + "\n";
            Output::of(Some(path), true)?.write(&text)?;
        }
        self.guest.report(&outcome, &mut output, self.json)?;
        saving.map_or(Ok(()), Saving::finish)?;
        Ok(self.guest.exit(&outcome))
    }
}

impl Run {
    /// Runs the program under rules.
    fn check(&self, rules: &Rules) -> anyhow::Result<Exit> {
        let chosen = &rules.chosen;
        let mut output = Output::of(self.output.as_deref(), self.json)?;
        // A screen cannot end the program, and nothing is switched off while it is followed afterwards.
        let follows = chosen.first_only || chosen.switch.is_some();
        let screen = self.screen || self.rules.is_default() && !follows;
        let cramped = screen && screened::is_cramped();
        if cramped {
            render::note(
                "the address space is limited (ulimit -v), which leaves no room for a screen: the \
                 program is followed in full",
            );
        }
        let lists = chosen.rules.iter().any(is_leak) && !follows;
        let (outcome, mut found) = match (screen || lists) && !cramped {
            true => {
                let (job, notices) = (self.guest.job(), render::notices());
                screened::screened(job, chosen, self.patience(screen), &notices)?
            }
            false => self.watch(rules)?,
        };
        outcome.notes.iter().for_each(|note| render::note(note));
        let report = self.guest.run_report(&outcome).with_rules(&mut found, &outcome);
        let coverage = found.coverage.clone();
        let coverage = coverage.unwrap_or_else(|| Coverage::of_whole(&chosen.rules));
        let report = report.with_coverage(coverage.clone());
        self.guest.write(&report, &mut output, self.json)?;
        rules.epilogue(&found, &report.findings())?;
        if self.verbose {
            render::note(&coverage.line());
        }
        Ok(match (rules.exit_code, found.is_empty()) {
            (_, true) if found.failure.is_some() => self.guest.exit_with_findings(&outcome),
            (_, true) => match self.guest.exit(&outcome) {
                Exit::Clean if found.unfollowed || !chosen.missing(&found.functions).is_empty() => {
                    Exit::Undecided
                }
                exit => exit,
            },
            (Some(code), false) => Exit::Guest(code),
            (None, false) => self.guest.exit_with_findings(&outcome),
        })
    }

    /// Whoever asks for a screen wants to know, however long it takes. Whoever asks for certain rules and for no screen
    /// has everything followed.
    fn patience(&self, screen: bool) -> Patience {
        let usual = Patience::default();
        let whole = if self.screen { Duration::MAX } else { usual.whole };
        let whole = self.patience.map_or(whole, |seconds| Duration::from_secs(seconds.into()));
        let longest = self.window.unwrap_or(usual.limits.longest);
        let beginning = match (self.screen, screen) {
            (true, _) => 0,
            (false, true) => usual.beginning,
            (false, false) => u64::MAX,
        };
        let beginning = self.follow.unwrap_or(beginning);
        let bounded = self.window.is_none() && !self.screen;
        Patience {
            beginning,
            whole,
            limits: WindowLimits { longest, moments: self.suspect, bounded },
        }
    }

    /// Checks the rules while the program runs.
    fn watch(&self, rules: &Rules) -> anyhow::Result<(Outcome, RuleFindings)> {
        let chosen = &rules.chosen;
        let watch = Watch::new(chosen);
        let mut job = self.guest.job();
        job.resolve = Some(watch.resolver());
        job.plan = invalid_calls::only_invalid_calls(watch.plan(), chosen);
        let mut make = |process| watch.consumer(process);
        let outcome =
            host::run_with(&job, EventSinks::for_events(&mut make)).map_err(fault_or_input)?;
        let found = watch.finish(&outcome.crashes);
        Ok((outcome, found))
    }
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
    /// What to run.
    pub fn job(&self) -> Job {
        let (program, arguments) = self.command.split_first().expect("clap requires one");
        let mut job = Job::new(program.clone(), arguments.to_vec());
        job.children = match self.children {
            ChildrenArgument::Follow => Children::Follow,
            ChildrenArgument::Native => Children::Native,
        };
        job.superblock_limit = self.superblock.max(1);
        job.layout = self.layout.unwrap_or_default();
        job.timeout = self.timeout;
        job
    }

    /// Where a recording goes if the user does not say.
    pub fn default_file(&self) -> PathBuf {
        let program = self.command.first().map(Path::new).unwrap_or("program".as_ref());
        let mut name = program.file_name().unwrap_or("program".as_ref()).to_owned();
        name.push(".whydunit");
        PathBuf::from(name)
    }

    /// The program as it was named, and all of the command.
    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    /// Runs the program, and passes on what the engine wants to say.
    pub fn run(
        &self,
        plan: Plan,
        make: &mut (dyn FnMut(i32) -> Box<dyn Consumer> + Send),
    ) -> anyhow::Result<Outcome> {
        let mut job = self.job();
        job.resolve = plan.has_names().then(functions::resolver);
        job.plan = plan;
        run_job(&job, make)
    }

    /// Tells how the run went.
    pub fn report(&self, outcome: &Outcome, to: &mut Output, json: bool) -> anyhow::Result<()> {
        self.write(&self.run_report(outcome), to, json)
    }

    fn run_report(&self, outcome: &Outcome) -> RunReport {
        let program = self.command.first().map(|name| name.to_string_lossy().into_owned());
        RunReport::of(program.unwrap_or_default(), outcome)
    }

    fn write(&self, report: &RunReport, to: &mut Output, json: bool) -> anyhow::Result<()> {
        let text = if json { report.json("run") } else { report.text(to.style()) };
        to.write(&text)
    }

    /// What to end with if rules found something.
    fn exit_with_findings(&self, outcome: &Outcome) -> Exit {
        match self.exit_code {
            ExitCodeOf::Guest => self.exit(outcome),
            ExitCodeOf::Tool => Exit::Findings,
        }
    }

    /// What to end with.
    pub fn exit(&self, outcome: &Outcome) -> Exit {
        match (self.exit_code, outcome.ending) {
            // It was ended by us, and nobody knows how it would have gone on.
            _ if outcome.refused.is_some() => Exit::Undecided,
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
    let outcome = host::run_with(job, EventSinks::for_events(make)).map_err(fault_or_input)?;
    for note in &outcome.notes {
        render::note(note);
    }
    Ok(outcome)
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
        match host::become_native(&self.guest.job()).map_err(fault_or_input)? {}
    }
}
