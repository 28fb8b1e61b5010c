//! The host's side: starts a runner ([`launch`]), listens to it ([`listen`]), stands in for it towards whoever
//! started this process ([`supervise`]), and reports how the guest ended.

mod launch;
mod listen;
pub mod replayer;
mod supervise;

use crate::config::{Children, Config, Layout, Point, Recording, Replaying, Schedule, SwitchPoint};
use crate::image::{self, Unusable};
use crate::listen::Rings;
use crate::log_listen::EventSinks;
use crate::log_ring::SHARED_BYTES;
use crate::processor;
use crate::report::{CrashReport, Divergence, ModuleMap, ProcessReplay};
pub use base::Ending;
use events::plan::Conflict;
use events::{Discard, Plan};
use launch::{Image, Launch, anonymous_file, config_file, pipe};
use listen::{Events, Finder, Lifeline, Listener, RunnerMessages};
use recording::Quirks;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use supervise::Supervisor;
pub use supervise::TIME_IS_UP;

/// What to run and how.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program, as the user named it.
    pub program: OsString,
    /// Its arguments, without its own name.
    pub arguments: Vec<OsString>,
    /// Children of the guest.
    pub children: Children,
    /// What to observe.
    pub plan: Plan,
    /// Most instructions of a superblock.
    pub superblock_limit: usize,
    /// How the processor behaves where processors differ: this one, unless a test says otherwise.
    pub quirks: Quirks,
    /// Where the parts of the program go.
    pub layout: Layout,
    /// Whether consumers may change the plan while the guest runs.
    pub controlled: bool,
    /// Finds the functions that the plan names.
    pub resolve: Option<Resolve>,
    /// Whether and how to record.
    pub record: Option<Record>,
    /// How long the guest may take; then it is ended by [`TIME_IS_UP`].
    pub timeout: Option<Duration>,
    /// Places where a recording's schedule may stop threads, besides those that it knows.
    pub switch_points: Vec<SwitchPoint>,
}

/// How to record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    /// Who runs when.
    pub schedule: Schedule,
    /// Whether threads are stopped inside blocks too.
    pub cut: bool,
    /// Where the region begins, if not all of the run is wanted.
    pub from: Option<Point>,
    /// Where it ends.
    pub to: Option<Point>,
}

/// Where in a module functions of these names begin.
pub type FindFunctions = dyn Fn(i32, &ModuleMap, &[String]) -> Vec<(u64, String)> + Send + Sync;

/// Finds functions by name in a file that has been mapped: the addresses of those that are there.
#[derive(Clone)]
pub struct Resolve(pub Arc<FindFunctions>);

impl std::fmt::Debug for Resolve {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Resolve")
    }
}

impl Job {
    /// A job that observes nothing.
    pub fn new(program: OsString, arguments: Vec<OsString>) -> Self {
        Self {
            program,
            arguments,
            children: Children::Follow,
            plan: Plan::default(),
            superblock_limit: usize::MAX,
            quirks: processor::here(),
            layout: Layout::default(),
            record: None,
            switch_points: Vec::new(),
            controlled: false,
            resolve: None,
            timeout: None,
        }
    }
}

/// What there is to say about a run.
#[derive(Debug)]
pub struct Outcome {
    /// How the guest ended.
    pub ending: Ending,
    /// Faults of processes that signals ended.
    pub crashes: Vec<CrashReport>,
    /// Things worth telling the user.
    pub notes: Vec<String>,
    /// Why the recording ends before the guest did.
    pub refused: Option<String>,
    /// Events at which the schedule of a recording decided.
    pub events: u64,
}

/// Why a run did not happen or did not finish.
#[derive(Debug)]
pub enum RunError {
    /// The program cannot be run.
    Unusable(PathBuf, Unusable),
    /// No file of that name is in the search path.
    NotFound(OsString),
    /// The system would not give us what we need.
    System(&'static str, io::Error),
    /// A recording cannot be read.
    Unreadable(String),
    /// A replay went another way than the recording.
    Diverged(Box<Divergence>),
    /// What is asked cannot be had of this program.
    Unfit(String),
    /// Parts of the plan cannot be had together.
    Plan(Conflict),
    /// Somebody ended a replay by a signal.
    Interrupted(i32),
    /// A fault of our own: what, and where the guest was.
    Fault {
        /// What happened.
        what: String,
        /// Where the guest was.
        pc: u64,
    },
}

impl std::fmt::Display for RunError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unusable(path, why @ Unusable::EmptyPath) => {
                let _ = path;
                write!(out, "{why}; give the path of an executable")
            }
            Self::Unusable(path, why) => write!(out, "{} {why}", path.display()),
            Self::NotFound(name) => write!(
                out,
                "{} is not in the search path; give a path such as ./{0}",
                name.to_string_lossy()
            ),
            Self::System(what, error) => write!(out, "cannot {what}: {error}"),
            Self::Unreadable(why) | Self::Unfit(why) => write!(out, "{why}"),
            Self::Plan(conflict) => write!(out, "{conflict}"),
            Self::Diverged(divergence) => write!(
                out,
                "the replay went another way than the recording, in thread {} at tick {}, {:#x}: {}",
                divergence.thread, divergence.time, divergence.pc, divergence.what
            ),
            Self::Interrupted(signal) => write!(out, "ended by signal {signal} before it was done"),
            Self::Fault { what, pc } => write!(
                out,
                "a fault of our own, not of the program: {what} (guest at {pc:#x}); \
                 please report it with the command line and this message"
            ),
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a job to its end; its events go nowhere.
pub fn run(job: &Job) -> Result<Outcome, RunError> {
    run_with(job, EventSinks { events: &mut |_| Box::new(Discard::default()), logs: None })
}

/// Whether a job can be started at all: where its program is.
pub fn check(job: &Job) -> Result<PathBuf, RunError> {
    job.plan.check_live().map_err(RunError::Plan)?;
    let path = find_program(&job.program)?;
    image::resolve(&path).map_err(|why| RunError::Unusable(path.clone(), why))?;
    Ok(path)
}

/// Runs a job to its end; events and log of each process go to their sinks.
pub fn run_with(job: &Job, sinks: EventSinks<'_>) -> Result<Outcome, RunError> {
    let path = check(job)?;
    let watched = job.plan.emits() || job.controlled;
    let rings = watched.then(Rings::new).transpose().map_err(|error| {
        RunError::System(
            "make room for events (a long file without a name; see `ulimit -Hf`)",
            error,
        )
    })?;
    let launch = launch_of(job, path, rings.as_deref())?;
    let supervisor = Supervisor::new();
    let (stopped, stop) = pipe("make a pipe")?;
    let launched = launch.start((&job.program, &job.arguments), [], supervisor.inherited())?;
    let events = Events::new(sinks, rings);
    let lifeline = Arc::new(Lifeline::new(launched.lifeline));
    let (status, (received, open)) = std::thread::scope(|scope| {
        let names = job.plan.names().map(str::to_owned).collect();
        let ends_all = job.record.is_some().then(|| lifeline.clone());
        let finder = Finder { lifeline: ends_all, resolve: job.resolve.clone(), names };
        let listener = Listener::start(scope, events, finder, launched.messages, stop, stopped);
        let status = supervisor.wait(launched.child.id() as i32, true, job.timeout);
        let killed = status.as_ref().is_ok_and(|status| is_killed(*status));
        (status, listener.finish(supervisor, killed))
    });
    let status = status.map_err(|error| RunError::System("wait for the guest", error))?;
    let status = ExitStatus::from_raw(status);
    if let Some(messages) = open
        && !is_killed(status.into_raw())
    {
        listen::leave_behind(&messages, &lifeline);
    }
    finish(status, received)
}

/// The runner of a job.
fn launch_of(job: &Job, path: PathBuf, rings: Option<&Rings>) -> Result<Launch, RunError> {
    let own = File::open("/proc/self/exe").map_err(|error| {
        RunError::System("open /proc/self/exe (the engine needs /proc: is it mounted?)", error)
    })?;
    let proc = File::open("/proc").map_err(|error| RunError::System("open /proc", error))?;
    let mut launch = Launch::new(Config {
        program: path.into_os_string().into_vec(),
        children: job.children,
        plan: job.plan.clone().with_ticks(job.plan.observe.ticks || job.record.is_some()),
        controlled: job.controlled,
        superblock_limit: job.superblock_limit,
        layout: job.layout,
        // SAFETY: asks only.
        personality: unsafe { libc::personality(0xffff_ffff) } as u32,
        ..Config::new(job.quirks)
    })?;
    launch.config.executable = launch.hand(&own)?;
    launch.config.proc = launch.hand(&proc)?;
    if let Some(rings) = rings {
        launch.config.rings = launch.hand(rings.file())?;
    }
    if let Some(how) = job.record {
        launch.config.recording = Some(Recording {
            schedule: how.schedule,
            cut: how.cut,
            switch_points: job.switch_points.clone(),
            shared: launch.hand(&shared_table()?)?,
            outputs: [1, 2].map(own_output),
            executed: false,
            from: how.from,
            to: how.to,
        });
    }
    Ok(launch)
}

/// Signals by which a person or a service manager ends a program. A replay has no use for them but
/// to end.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// What a process ends with that cannot be recorded any further.
pub const REFUSED: i32 = 2;

/// Whoever kills the guest outright wants all of it gone: it ends with this process.
fn is_killed(status: i32) -> bool {
    ExitStatus::from_raw(status).signal() == Some(libc::SIGKILL)
}

fn finish(status: ExitStatus, received: RunnerMessages) -> Result<Outcome, RunError> {
    if let Some((what, pc)) = received.fault {
        return Err(RunError::Fault { what, pc });
    }
    if let Some(why) = received.unfit {
        return Err(RunError::Unfit(why));
    }
    let ending = match (status.code(), status.signal()) {
        // It was ended with the process that could not go on.
        (None, Some(libc::SIGKILL)) if received.refused.is_some() => Ending::Exit(REFUSED),
        (Some(code), _) => Ending::Exit(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Exit(0),
    };
    let RunnerMessages { crashes, notes, refused, events, .. } = received;
    Ok(Outcome { ending, crashes, notes, refused, events })
}

/// An anonymous file for what the processes of a recording share.
fn shared_table() -> Result<File, RunError> {
    let file = anonymous_file()?;
    file.set_len(SHARED_BYTES).map_err(|error| RunError::System("make a shared table", error))?;
    Ok(file)
}

/// Device and inode behind a descriptor of this process.
fn own_output(descriptor: i32) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(format!("/proc/self/fd/{descriptor}")).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Looks a program up as a shell does.
pub fn find_program(name: &OsStr) -> Result<PathBuf, RunError> {
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut candidates = std::env::split_paths(&path).map(|directory| directory.join(name));
    candidates
        .find(|candidate| is_program(candidate))
        .ok_or_else(|| RunError::NotFound(name.to_owned()))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Makes this very process run a job natively in the engine's address layout: it stops itself
/// before the guest's first instruction. Comes back only if that fails.
pub fn become_native(job: &Job) -> Result<std::convert::Infallible, RunError> {
    let path = check(job)?;
    let config = Config {
        program: path.into_os_string().into_vec(),
        superblock_limit: job.superblock_limit,
        layout: job.layout,
        native: true,
        channel: 2,
        ..Config::new(job.quirks)
    };
    let config = config_file(&config)?;
    let image =
        Image::of(&job.program, &job.arguments, config.as_raw_fd(), Supervisor::new().inherited());
    Err(RunError::System("start the runner", image.execute(&[config.as_raw_fd()])))
}

/// What to replay and how.
pub struct ReplayJob<'a> {
    /// The recording.
    pub file: &'a File,
    /// Processes to become, one after the other; the last is the one to replay.
    pub processes: Vec<u32>,
    /// Whether its children are replayed as well, and theirs.
    pub tree: bool,
    /// What to observe.
    pub plan: Plan,
    /// Most instructions of a superblock.
    pub superblock_limit: usize,
    /// Where the guest's output goes, if anywhere.
    pub outputs: Option<[RawFd; 2]>,
}

/// Replays a process to the end of its log, and its children if these are wanted; and the crash that it
/// ended in.
pub fn replay(
    job: &ReplayJob<'_>,
    sinks: EventSinks<'_>,
) -> Result<(Vec<ProcessReplay>, Vec<CrashReport>), RunError> {
    job.plan.check().map_err(RunError::Plan)?;
    let rings = job.plan.emits().then(Rings::new).transpose();
    let rings = rings.map_err(|error| RunError::System("make room for events", error))?;
    let mut launch = Launch::new(Config {
        plan: job.plan.clone().with_ticks(true),
        superblock_limit: job.superblock_limit,
        ..Config::new(processor::here())
    })?;
    if let Some(rings) = &rings {
        launch.config.rings = launch.hand(rings.file())?;
    }
    launch.config.replaying = Some(Replaying {
        file: launch.hand(job.file)?,
        processes: job.processes.clone(),
        tree: job.tree,
        outputs: job.outputs,
        control: None,
    });
    let supervisor = Supervisor::new();
    let (stopped, stop) = pipe("make a pipe")?;
    let outputs = job.outputs.into_iter().flatten().filter(|output| *output > 2);
    let launched = launch.start((OsStr::new("replay"), &[]), outputs, supervisor.inherited())?;
    let (status, (received, _)) = std::thread::scope(|scope| {
        let finder = Finder { lifeline: None, resolve: None, names: Vec::new() };
        let events = Events::new(sinks, rings);
        let listener = Listener::start(scope, events, finder, launched.messages, stop, stopped);
        let status = supervisor.wait(launched.child.id() as i32, true, None);
        let killed = status.as_ref().is_ok_and(|status| is_killed(*status));
        (status, listener.finish(supervisor, killed))
    });
    drop(launched.lifeline);
    let status = status.map_err(|error| RunError::System("wait for the replay", error))?;
    replayed(job, ExitStatus::from_raw(status), received)
}

/// What came of a replay.
fn replayed(
    job: &ReplayJob<'_>,
    status: ExitStatus,
    received: RunnerMessages,
) -> Result<(Vec<ProcessReplay>, Vec<CrashReport>), RunError> {
    if let Some((what, pc)) = received.fault {
        return Err(RunError::Fault { what, pc });
    }
    if let Some(why) = received.unfit {
        return Err(RunError::Unfit(why));
    }
    if let Some(why) = received.refused {
        return Err(RunError::Unreadable(why));
    }
    let last = job.processes.last();
    if !received.replayed.iter().any(|replay| Some(&replay.process) == last) {
        if let Some(signal) = status.signal().filter(|signal| ENDING.contains(signal)) {
            return Err(RunError::Interrupted(signal));
        }
        let what = format!("the replay ended without a word ({status})");
        return Err(RunError::Fault { what, pc: 0 });
    }
    Ok((received.replayed, received.crashes))
}
