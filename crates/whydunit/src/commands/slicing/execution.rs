//! An execution to ask about: run here and now, or saved before.

use super::late::Late;
use super::source::Source;
use super::windows;
use crate::commands::files::Files;
use crate::commands::run::{Guest, fault_or_input};
use crate::exit::OurFault;
use crate::render::crash::{self, Crash};
use analyze::dependence::Trace;
use analyze::slice::ending::Ended;
use anyhow::{Context, bail};
use engine::host::{Ending, Outcome, RunError};
use engine::report::CrashReport;
use events::file::{self, ReadError};
use events::{Consumer, Plan};
use recording::{End, Origin, Recording, log};
use replay::{Session, Shown, Timeline};
use std::ffi::OsStr;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
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
    source: Option<Source>,
}

impl Execution {
    /// Records a program, or takes a recording if that is what it is, and replays it.
    pub fn run(guest: &Guest, memory: u64) -> anyhow::Result<Self> {
        let source = Source::of(guest)?;
        let (mut execution, line) = Self::begin(source.file())?;
        execution.trace = windows::survey(line, memory)?;
        execution.source = Some(source);
        Ok(execution)
    }

    /// The same, but observes only as much of the end as a question turns out to need: `ask` gives
    /// the answer, or nothing if there must be more. Without an answer all has been observed.
    pub fn run_late<T>(
        guest: &Guest,
        memory: u64,
        mut ask: impl FnMut(&Self) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<(Self, Option<T>)> {
        let source = Source::of(guest)?;
        let (mut execution, mut line) = Self::begin(source.file())?;
        execution.source = Some(source);
        let mut late = Late::of(&line);
        while let Some(trace) = late.more(&mut line, memory)? {
            execution.trace = trace;
            // A moment that is not found may lie further back.
            if let Ok(Some(answer)) = ask(&execution) {
                execution.observed = Some(late.observed());
                return Ok((execution, Some(answer)));
            }
        }
        execution.trace = windows::survey(line, memory)?;
        Ok((execution, None))
    }

    /// The recording, if it is one.
    pub fn recording(&self) -> Option<&Path> {
        self.source.as_ref().map(Source::file)
    }

    /// The process of a recording that failed, or the first one: how it ended, and where it can be
    /// observed. Nothing has been yet.
    fn begin(file: &Path) -> anyhow::Result<(Self, Timeline)> {
        let unusable = || format!("{} cannot be replayed", file.display());
        let session = Session::open(file).with_context(unusable)?;
        let process = failed(session.recording());
        let mut line = session.timeline(process).map_err(fault_or_input)?;
        windows::prepare(&mut line);
        let mut end = line.end().map_err(fault_or_input)?.clone();
        let ending = match (end.ending, end_of(session.recording(), process)) {
            (Some(log::Ending::Exit(code)), _) => Some(Ending::Exit(code & 0xff)),
            (Some(log::Ending::Signal(signal)), _) => Some(Ending::Signal(signal)),
            (None, End::Killed(signal)) => Some(Ending::Signal(signal)),
            (None, _) => None,
        };
        let mut crashes = Vec::new();
        if let Some(log::Ending::Signal(_)) = end.ending {
            let make = &mut |_| -> Box<dyn Consumer> { Box::new(events::Discard::default()) };
            let plan = Plan::default();
            let replayed = session.replay_and_report(process, plan, Shown::Nothing, make);
            let (replayed, reports) = replayed.map_err(fault_or_input)?;
            if let Some(divergence) = replayed.divergence {
                return Err(fault_or_input(RunError::Diverged(Box::new(divergence))));
            }
            crashes = reports;
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
        let known = |ending| Outcome { ending, crashes, notes: Vec::new(), refused: None };
        let (outcome, observed) = (ending.map(known), None);
        let trace = Trace::default();
        Ok((Self { trace, program, outcome, observed, _files: files, source: None }, line))
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
        let (outcome, observed) = (None, None);
        Ok(Self { trace, program, outcome, observed, _files: Files::default(), source: None })
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
        let Some(report) = self.crash() else {
            let exited = matches!(&self.outcome, Some(Outcome { ending: Ending::Exit(_), .. }));
            return if exited { Ended::Exit } else { Ended::Stopped };
        };
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
                let signal = crash::signal_name(signal);
                format!("the program was ended by {signal}; the recording ends a little before")
            }
            (None, None) => "what is known of the program ends here".into(),
        }
    }
}

/// The process of a recording to explain: the program itself if a signal ended it, else the first
/// that one did, else the program.
pub fn failed(recording: &Recording) -> u32 {
    let program = program(recording);
    let is_killed = |process: u32| matches!(end_of(recording, process), End::Killed(_));
    let processes = recording.processes().iter().map(|start| start.process);
    std::iter::once(program).chain(processes).find(|process| is_killed(*process)).unwrap_or(program)
}

/// The program that was recorded: the last that the first process became.
fn program(recording: &Recording) -> u32 {
    let mut process = 0;
    while let Some(next) = recording.processes().iter().find(|start| {
        start.parent == Some(process) && start.process > process && start.origin == Origin::Exec
    }) {
        process = next.process;
    }
    process
}

fn end_of(recording: &Recording, process: u32) -> End {
    let ends = recording.summary().map_or(&[][..], |summary| &summary.processes);
    ends.iter().find(|end| end.process == process).map_or(End::Unknown, |end| end.end)
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
