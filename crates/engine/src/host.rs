//! The host's side: starts a runner, listens to it ([`listen`]), stands in for it towards whoever
//! started this process ([`supervise`]), and tells how the guest ended.

mod listen;
pub mod replayer;
mod supervise;

use crate::config::{Children, Config, Point, Recording, Replaying, Schedule, VARIABLE};
use crate::image::{self, Unusable};
use crate::listen::Rings;
use crate::log_listen::Ears;
use crate::log_ring::SHARED_BYTES;
use crate::processor;
use crate::report::{CrashReport, Divergence, ModuleMap, ProcessReplay};
use crate::runner::{start, sys};
pub use base::Ending;
use events::plan::Conflict;
use events::{Discard, Plan};
use listen::{Events, Finder, Heard, Lifeline, Listener};
use recording::Quirks;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use supervise::{Inherited, Supervisor};

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
    /// Whether consumers may change the plan while the guest runs.
    pub controlled: bool,
    /// Finds the functions that the plan names.
    pub resolve: Option<Resolve>,
    /// Whether and how to record.
    pub record: Option<Record>,
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
            record: None,
            controlled: false,
            resolve: None,
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
            Self::Unreadable(why) => write!(out, "{why}"),
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
    run_with(job, Ears { events: &mut |_| Box::new(Discard::default()), logs: None })
}

/// Whether a job can be started at all: where its program is.
pub fn check(job: &Job) -> Result<PathBuf, RunError> {
    job.plan.check_live().map_err(RunError::Plan)?;
    let path = find_program(&job.program)?;
    image::resolve(&path).map_err(|why| RunError::Unusable(path.clone(), why))?;
    Ok(path)
}

/// Runs a job to its end; events and log of each process go where they are heard.
pub fn run_with(job: &Job, ears: Ears<'_>) -> Result<Outcome, RunError> {
    let path = check(job)?;
    let (reader, writer) = pipe("make a pipe")?;
    let (lifeline_read, lifeline_write) = pipe("make a pipe")?;
    let channel = high(&writer)?;
    let lifeline = high(&lifeline_read)?;
    let own = File::open("/proc/self/exe").map_err(|error| {
        RunError::System("open /proc/self/exe (the engine needs /proc: is it mounted?)", error)
    })?;
    let own = high(&own)?;
    let proc = File::open("/proc").map_err(|error| RunError::System("open /proc", error))?;
    let proc = high(&proc)?;
    let watched = job.plan.emits() || job.controlled;
    let rings = watched.then(Rings::new).transpose().map_err(|error| {
        RunError::System(
            "make room for events (a long file without a name; see `ulimit -Hf`)",
            error,
        )
    })?;
    let shared = rings.as_ref().map(|rings| high(rings.file())).transpose()?;
    let table = job.record.map(|_| shared_table()).transpose()?;
    let recording = job.record.zip(table.as_ref()).map(|(how, table)| Recording {
        schedule: how.schedule,
        cut: how.cut,
        shared: table.as_raw_fd(),
        outputs: [1, 2].map(own_output),
        executed: false,
        from: how.from,
        to: how.to,
    });
    let config = Config {
        program: path.clone().into_os_string().into_vec(),
        children: job.children,
        plan: job.plan.clone().with_ticks(job.plan.observe.ticks || recording.is_some()),
        controlled: job.controlled,
        recording,
        replaying: None,
        superblock_limit: job.superblock_limit,
        quirks: job.quirks,
        native: false,
        // SAFETY: asks only.
        personality: unsafe { libc::personality(0xffff_ffff) } as u32,
        filters: Vec::new(),
        executable: own.as_raw_fd(),
        proc: proc.as_raw_fd(),
        channel: channel.as_raw_fd(),
        lifeline: lifeline.as_raw_fd(),
        rings: shared.as_ref().map_or(-1, AsRawFd::as_raw_fd),
    };
    let config = config_file(&config)?;
    let mut command = Command::new("/proc/self/exe");
    let keep = [&channel, &lifeline, &own, &proc, &config].into_iter().chain(&shared).chain(&table);
    let keep = keep.map(AsRawFd::as_raw_fd).collect();
    let supervisor = Supervisor::new();
    let (stopped, stop) = pipe("make a pipe")?;
    prepare(
        &mut command,
        Image::of(&job.program, &job.arguments, config.as_raw_fd(), supervisor.inherited()),
        keep,
    );
    let child = command.spawn().map_err(|error| RunError::System("start the runner", error))?;
    drop((writer, channel, lifeline, lifeline_read, own, proc, config, shared, table));
    let events = Events::new(ears, rings);
    let lifeline_write = Arc::new(Lifeline::new(lifeline_write));
    let (status, (heard, open)) = std::thread::scope(|scope| {
        let lifeline = job.record.is_some().then(|| lifeline_write.clone());
        let names = job.plan.names().map(str::to_owned).collect();
        let finder = Finder { lifeline, resolve: job.resolve.clone(), names };
        let listener = Listener::start(scope, events, finder, reader, stop, stopped);
        let status = supervisor.wait(child.id() as i32, true);
        let killed = status.as_ref().is_ok_and(|status| is_killed(*status));
        (status, listener.finish(supervisor, killed))
    });
    let status = status.map_err(|error| RunError::System("wait for the guest", error))?;
    let status = ExitStatus::from_raw(status);
    if let Some(messages) = open
        && !is_killed(status.into_raw())
    {
        listen::leave_behind(&messages, &lifeline_write);
    }
    finish(status, heard)
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

fn finish(status: ExitStatus, heard: Heard) -> Result<Outcome, RunError> {
    if let Some((what, pc)) = heard.fault {
        return Err(RunError::Fault { what, pc });
    }
    let ending = match (status.code(), status.signal()) {
        // It was ended with the process that could not go on.
        (None, Some(libc::SIGKILL)) if heard.refused.is_some() => Ending::Exit(REFUSED),
        (Some(code), _) => Ending::Exit(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Exit(0),
    };
    let Heard { crashes, notes, refused, .. } = heard;
    Ok(Outcome { ending, crashes, notes, refused })
}

/// An anonymous file for what the processes of a recording share.
fn shared_table() -> Result<OwnedFd, RunError> {
    let file = anonymous_file()?;
    file.set_len(SHARED_BYTES).map_err(|error| RunError::System("make a shared table", error))?;
    high(&file)
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

fn pipe(what: &'static str) -> Result<(OwnedFd, OwnedFd), RunError> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(RunError::System(what, io::Error::last_os_error()));
    }
    // SAFETY: both were just made and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// A copy of a descriptor above those that guests use.
fn high(descriptor: &impl AsRawFd) -> Result<OwnedFd, RunError> {
    let copy = sys::duplicate_high(descriptor.as_raw_fd(), true);
    if copy < 0 {
        let error = io::Error::from_raw_os_error(-copy as i32);
        return Err(RunError::System("use descriptor 1000 (see `ulimit -Hn`)", error));
    }
    // SAFETY: it was just made.
    Ok(unsafe { OwnedFd::from_raw_fd(copy as i32) })
}

fn anonymous_file() -> Result<File, RunError> {
    // SAFETY: a terminated name.
    let descriptor = unsafe { libc::memfd_create(c"whydunit".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        let error = io::Error::last_os_error();
        return Err(RunError::System("make an anonymous file", error));
    }
    // SAFETY: it was just made.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

fn config_file(config: &Config) -> Result<OwnedFd, RunError> {
    let failed = |error| RunError::System("make an anonymous file", error);
    let mut file = anonymous_file()?;
    let text = serde_json::to_vec(config).map_err(|error| failed(error.into()))?;
    file.write_all(&text).map_err(failed)?;
    file.rewind().map_err(failed)?;
    high(&file)
}

/// Arguments and environment, ready for the kernel and in the order the guest would have them
/// natively: `Command` sorts variables.
struct Image {
    // The strings that the pointers lead to.
    _texts: Vec<CString>,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    ignore_pipe: bool,
    /// Standard descriptors that were closed when this tool started.
    closed: Vec<RawFd>,
    inherited: Inherited,
}

// SAFETY: the pointers lead to the strings that move along with them.
unsafe impl Send for Image {}
// SAFETY: nothing is changed through a shared reference.
unsafe impl Sync for Image {}

impl Image {
    fn of(program: &OsStr, arguments: &[OsString], config: RawFd, inherited: Inherited) -> Self {
        let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
        let arguments: Vec<CString> = [program]
            .into_iter()
            .chain(arguments.iter().map(OsString::as_os_str))
            .map(|word| text(word.as_bytes()))
            .collect();
        let environment: Vec<CString> = std::env::vars_os()
            .map(|(name, value)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
            .chain([text(format!("{VARIABLE}={config}").as_bytes())])
            .collect();
        let pointers = |texts: &[CString]| {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (argument_pointers, environment_pointers) =
            (pointers(&arguments), pointers(&environment));
        Self {
            _texts: arguments.into_iter().chain(environment).collect(),
            arguments: argument_pointers,
            environment: environment_pointers,
            ignore_pipe: start::inherited_ignored_pipe(),
            closed: start::inherited_closed().collect(),
            inherited,
        }
    }

    /// Becomes the runner. Only makes async-signal-safe calls; comes back only if it fails.
    fn execute(&self, keep: &[RawFd]) -> io::Error {
        for descriptor in keep {
            // SAFETY: changes a flag of a descriptor.
            unsafe { libc::fcntl(*descriptor, libc::F_SETFD, 0) };
        }
        for descriptor in &self.closed {
            // SAFETY: closes what was closed for this tool too.
            unsafe { libc::close(*descriptor) };
        }
        let disposition = if self.ignore_pipe { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: the guest starts with what this tool was started with; both vectors end with a
        // null pointer and their strings are alive.
        unsafe {
            libc::signal(libc::SIGPIPE, disposition);
            self.inherited.restore();
            let before = libc::personality(0xffff_ffff);
            libc::personality((before | libc::ADDR_NO_RANDOMIZE) as _);
            libc::execve(
                c"/proc/self/exe".as_ptr(),
                self.arguments.as_ptr(),
                self.environment.as_ptr(),
            );
        }
        io::Error::last_os_error()
    }
}

/// Makes the child of a command the runner.
fn prepare(command: &mut Command, image: Image, keep: Vec<RawFd>) {
    // SAFETY: the closure only makes async-signal-safe calls.
    unsafe { command.pre_exec(move || Err(image.execute(&keep))) };
}

/// Makes this very process run a job natively in the engine's address layout: it stops itself
/// before the guest's first instruction. Comes back only if that fails.
pub fn become_native(job: &Job) -> Result<std::convert::Infallible, RunError> {
    let path = check(job)?;
    let config = Config {
        program: path.into_os_string().into_vec(),
        children: Children::Native,
        plan: Plan::default(),
        controlled: false,
        superblock_limit: job.superblock_limit,
        quirks: job.quirks,
        native: true,
        recording: None,
        replaying: None,
        personality: 0,
        filters: Vec::new(),
        executable: -1,
        proc: -1,
        channel: 2,
        lifeline: -1,
        rings: -1,
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
    ears: Ears<'_>,
) -> Result<(Vec<ProcessReplay>, Vec<CrashReport>), RunError> {
    job.plan.check().map_err(RunError::Plan)?;
    let (reader, writer) = pipe("make a pipe")?;
    let (lifeline_read, lifeline_write) = pipe("make a pipe")?;
    let channel = high(&writer)?;
    let lifeline = high(&lifeline_read)?;
    let file = high(job.file)?;
    let rings = job.plan.emits().then(Rings::new).transpose();
    let rings = rings.map_err(|error| RunError::System("make room for events", error))?;
    let shared = rings.as_ref().map(|rings| high(rings.file())).transpose()?;
    let config = Config {
        program: Vec::new(),
        children: Children::Native,
        plan: job.plan.clone().with_ticks(true),
        controlled: false,
        rings: shared.as_ref().map_or(-1, AsRawFd::as_raw_fd),
        superblock_limit: job.superblock_limit,
        quirks: processor::here(),
        native: false,
        personality: 0,
        filters: Vec::new(),
        recording: None,
        replaying: Some(Replaying {
            file: file.as_raw_fd(),
            processes: job.processes.clone(),
            tree: job.tree,
            outputs: job.outputs,
            control: None,
        }),
        executable: -1,
        proc: -1,
        channel: channel.as_raw_fd(),
        lifeline: lifeline.as_raw_fd(),
    };
    let config = config_file(&config)?;
    let mut command = Command::new("/proc/self/exe");
    let mut keep =
        vec![channel.as_raw_fd(), lifeline.as_raw_fd(), file.as_raw_fd(), config.as_raw_fd()];
    keep.extend(shared.as_ref().map(AsRawFd::as_raw_fd));
    keep.extend(job.outputs.into_iter().flatten().filter(|output| *output > 2));
    let supervisor = Supervisor::new();
    let (stopped, stop) = pipe("make a pipe")?;
    let name = OsStr::new("replay");
    prepare(&mut command, Image::of(name, &[], config.as_raw_fd(), supervisor.inherited()), keep);
    let child = command.spawn().map_err(|error| RunError::System("start the runner", error))?;
    drop((writer, channel, lifeline, lifeline_read, file, config, shared));
    let (status, (heard, _)) = std::thread::scope(|scope| {
        let finder = Finder { lifeline: None, resolve: None, names: Vec::new() };
        let events = Events::new(ears, rings);
        let listener = Listener::start(scope, events, finder, reader, stop, stopped);
        let status = supervisor.wait(child.id() as i32, true);
        let killed = status.as_ref().is_ok_and(|status| is_killed(*status));
        (status, listener.finish(supervisor, killed))
    });
    drop(lifeline_write);
    let status = status.map_err(|error| RunError::System("wait for the replay", error))?;
    if let Some((what, pc)) = heard.fault {
        return Err(RunError::Fault { what, pc });
    }
    if let Some(why) = heard.refused {
        return Err(RunError::Unreadable(why));
    }
    let last = job.processes.last();
    if !heard.replayed.iter().any(|replay| Some(&replay.process) == last) {
        let status = ExitStatus::from_raw(status);
        if let Some(signal) = status.signal().filter(|signal| ENDING.contains(signal)) {
            return Err(RunError::Interrupted(signal));
        }
        let what = format!("the replay ended without a word ({status})");
        return Err(RunError::Fault { what, pc: 0 });
    }
    Ok((heard.replayed, heard.crashes))
}
