//! An execution to ask about: run here and now, or saved before.

use super::late::Late;
use super::windows;
use crate::commands::files::Files;
use crate::commands::run::{Guest, fault_or_input};
use crate::exit::OurFault;
use crate::render::crash::{self, Crash};
use analyze::dependence::Trace;
use analyze::slice::ending::Ended;
use anyhow::{Context, bail};
use engine::host::{Ending, Outcome};
use engine::report::CrashReport;
use events::file::{self, ReadError};
use events::{Consumer, Plan};
use recording::{End, Recording};
use replay::{Session, Shown, Timeline};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use symbols::{DebugFiles, Image, LoadedModule, Program};

/// Where the engine loads programs that can be loaded anywhere.
const LOADED_AT: u64 = 0x5555_5555_4000;

/// An execution, and the program that ran.
pub struct Execution {
    /// What happened.
    pub trace: Trace,
    /// The program's files.
    pub program: Program,
    /// How it ended, if it was run here.
    pub outcome: Option<Outcome>,
    /// How many windows of how many have been observed, if not all.
    pub observed: Option<(usize, usize)>,
    /// Files of the program that a recording had to stand in for.
    _files: Files,
}

type Traces = Arc<Mutex<BTreeMap<i32, Trace>>>;

/// A trace that is left behind when the stream ends.
struct Leaving {
    process: i32,
    trace: Trace,
    traces: Traces,
}

impl Consumer for Leaving {
    fn records(&mut self, bytes: &[u8]) {
        self.trace.records(bytes);
    }

    fn end(&mut self) {
        self.trace.end();
        let mut traces = self.traces.lock().unwrap_or_else(|broken| broken.into_inner());
        traces.insert(self.process, std::mem::take(&mut self.trace));
    }
}

impl Execution {
    /// Runs a program, or replays a recording if that is what it is.
    pub fn run(guest: &Guest, memory: u64) -> anyhow::Result<Self> {
        if let Some(file) = recording_of(guest) {
            return Self::replay(file, memory);
        }
        let traces = Traces::default();
        let plan = windows::plan();
        let mut first = None;
        let outcome = guest.run(plan, &mut |process| {
            first.get_or_insert(process);
            Box::new(Leaving { process, trace: Trace::default(), traces: traces.clone() })
        })?;
        let mut traces = std::mem::take(&mut *traces.lock().unwrap_or_else(|e| e.into_inner()));
        let crash = outcome.crashes.first();
        let process = crash.map(|crash| crash.process).or(first).unwrap_or_default();
        let Some(trace) = traces.remove(&process) else {
            bail!("nothing of the program was observed");
        };
        let program = match crash {
            Some(report) => crash::program(report),
            None => executable(&guest.command()[0])?,
        };
        let (outcome, observed) = (Some(outcome), None);
        Ok(Self { trace, program, outcome, observed, _files: Files::default() })
    }

    /// Replays the process of a recording that failed, or the first one.
    pub fn replay(file: &Path, memory: u64) -> anyhow::Result<Self> {
        let (mut execution, line) = Self::begin(file)?;
        execution.trace = windows::survey(line, memory)?;
        Ok(execution)
    }

    /// Replays it only as far back as a question turns out to need, if it can be asked so: `ask`
    /// gives its answer, or nothing if more is needed. The answer is `None` if all of it is.
    pub fn replay_late<T>(
        file: &Path,
        memory: u64,
        mut ask: impl FnMut(&Self) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<(Self, Option<T>)> {
        let (mut execution, mut line) = Self::begin(file)?;
        let mut late = Late::of(&line);
        while let Some(trace) = late.more(&mut line, memory)? {
            execution.trace = trace;
            if let Ok(Some(answer)) = ask(&execution) {
                execution.observed = Some(late.observed());
                return Ok((execution, Some(answer)));
            }
        }
        execution.trace = windows::survey(line, memory)?;
        Ok((execution, None))
    }

    /// An execution of which nothing has been observed yet, and where that can be had.
    fn begin(file: &Path) -> anyhow::Result<(Self, Timeline)> {
        let unusable = || format!("{} cannot be replayed", file.display());
        let session = Session::open(file).with_context(unusable)?;
        let process = failed(session.recording());
        let mut line = session.timeline(process).map_err(fault_or_input)?;
        windows::prepare(&mut line);
        let mut end = line.end().map_err(fault_or_input)?.clone();
        let (ending, killed) = match end.ending {
            Some(recording::log::Ending::Exit(code)) => (Ending::Exit(code), false),
            Some(recording::log::Ending::Signal(signal)) => (Ending::Signal(signal), true),
            None => (Ending::Exit(0), false),
        };
        let mut crashes = Vec::new();
        if killed {
            let make = &mut |_| -> Box<dyn Consumer> { Box::new(events::Discard::default()) };
            let plan = Plan::default();
            let replayed = session.replay_and_report(process, plan, Shown::Nothing, make);
            crashes = replayed.map_err(fault_or_input)?.1;
        }
        let mut files = Files::default();
        let loaded = [&mut end.modules].into_iter();
        for modules in loaded.chain(crashes.iter_mut().map(|report| &mut report.modules)) {
            files.stand_in(session.recording(), modules)?;
        }
        let program = match crashes.first() {
            Some(report) => crash::program(report),
            None => crash::program_of(&end.modules),
        };
        let outcome = Outcome { ending, crashes, notes: Vec::new(), refused: None };
        let outcome = Some(outcome);
        let trace = Trace::default();
        Ok((Self { trace, program, outcome, observed: None, _files: files }, line))
    }

    /// Reads a saved stream of events.
    pub fn open(events: &Path, program: &OsStr) -> anyhow::Result<Self> {
        let name = || events.display().to_string();
        let opened = File::open(events).with_context(|| format!("cannot open {}", name()))?;
        let mut trace = Trace::default();
        file::feed(BufReader::new(opened), &mut trace).map_err(|error| match error {
            ReadError::Io(error) => anyhow::Error::from(error).context(name()),
            ReadError::NotAStream => anyhow::anyhow!(
                "{} is not a stream of events; make one with whydunit run --observe memory \
                 --save-events FILE -- PROG",
                name()
            ),
            ReadError::Version(version) => {
                anyhow::anyhow!("{} was written by another version ({version})", name())
            }
            ReadError::Damaged => anyhow::anyhow!("{} is damaged or cut off", name()),
        })?;
        if trace.broken {
            bail!("{} holds records that make no sense", name());
        }
        let (path, program) = (find(program), executable(program)?);
        if trace.blocks.differs_from(&program) {
            crate::render::note(&format!(
                "{} has changed since its events were saved; names and lines may be wrong",
                path.display()
            ));
        }
        Ok(Self { trace, program, outcome: None, observed: None, _files: Files::default() })
    }

    /// Whether all that was asked about could be looked at.
    pub fn complete(&self) -> anyhow::Result<()> {
        match self.trace.failure() {
            Some(why) => {
                let what = format!("a part of the recording could not be replayed again: {why}");
                Err(OurFault(what).into())
            }
            None => Ok(()),
        }
    }

    /// The crash, if it ended in one.
    pub fn crash(&self) -> Option<&CrashReport> {
        self.outcome.as_ref()?.crashes.first()
    }

    /// How it ended, in the words of slices.
    pub fn ended(&self) -> Ended {
        let Some(report) = self.crash() else { return Ended::Exit };
        if report.code > 0 {
            let code = crash::code_at(report, report.pc);
            return Ended::Fault { pc: report.pc, code, stack: report.general[4] };
        }
        let calls = Crash::of(report).calls_to_own();
        let calls = calls.into_iter().map(|(function, address)| (function, address.0)).collect();
        Ended::GaveUp { calls }
    }

    /// How it ended, for a reader.
    pub fn ending(&self) -> String {
        match (self.crash(), self.outcome.as_ref().map(|outcome| outcome.ending)) {
            (Some(report), _) => Crash::of(report).finding.title,
            (None, Some(Ending::Exit(code))) => format!("the program ended with exit code {code}"),
            (None, Some(Ending::Signal(signal))) => {
                format!("the program was ended by {}", crash::signal_name(signal))
            }
            (None, None) => "the events end here".into(),
        }
    }
}

/// The recording that is given in place of a program, if it is one.
pub fn recording_of(guest: &Guest) -> Option<&Path> {
    let [only] = guest.command() else { return None };
    Some(Path::new(only)).filter(|file| Recording::open(file).is_ok())
}

/// The first process of a recording that a signal ended, or else the first.
pub fn failed(recording: &Recording) -> u32 {
    let processes = recording.summary().map_or(&[][..], |summary| &summary.processes);
    let killed = processes.iter().find(|process| matches!(process.end, End::Killed(_)));
    killed.map_or(0, |process| process.process)
}

/// The program's file alone, where the engine loads it.
fn executable(name: &OsStr) -> anyhow::Result<Program> {
    let path = find(name);
    let context = || format!("cannot read {}", path.display());
    let image = Image::open(&path).with_context(context)?;
    let starts = image.segments().iter().map(|segment| segment.address.0);
    let lowest = starts.min().unwrap_or(0) & !0xfff;
    let ends = image.segments().iter().map(|s| s.address.0.saturating_add(s.size));
    let highest = ends.max().unwrap_or(0);
    let bias = if lowest == 0 { LOADED_AT } else { 0 };
    let range = base::Range::new(lowest + bias, highest - lowest);
    Ok(Program::open([LoadedModule { path, bias, range }], &DebugFiles::default()))
}

/// Looks a program up as a shell would.
fn find(name: &OsStr) -> PathBuf {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return path.to_owned();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let runs = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(runs)
        .unwrap_or_else(|| path.to_owned())
}
