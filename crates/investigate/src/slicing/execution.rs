//! An execution to ask about: run here and now, or saved before.

use super::replayed::Replayed;
use super::tail_windows::TailWindows;
use super::windows;
use crate::case::Case;
use crate::crash::{self, Crash};
use crate::error::{OurFault, fault_or_input};
use crate::notices::Notices;
use crate::program;
use crate::threads::Threads;
use analyze::dependence::Trace;
use analyze::dependence::control::Control;
use analyze::slice::ending::{Asked, Ended};
use analyze::slice::explain::{Explanation, explain};
use analyze::slice::view::{Unfold, Viewer};
use analyze::slice::{Slice, View};
use anyhow::{Context, bail};
use base::StepCount;
use base::{Address, CrashReport, ThreadNumber, Tick};
use engine::host::{Ending, Outcome, RunError};
use events::file::{self, ReadError};
use events::{Consumer, Plan};
use recording::End;
use replay::{Shown, Timeline};
use std::ffi::OsStr;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use symbols::Program;

/// An execution, and the program that ran.
pub struct Execution {
    /// What happened.
    pub trace: Trace,
    /// The program's files.
    pub program: Program,
    /// How it ended, if that is known.
    pub outcome: Option<Outcome>,
    /// How many windows of how many have been observed, if not all.
    pub observed: Option<(usize, usize)>,
    /// The process of the recording; nothing if it is a saved stream.
    pub process: Option<u32>,
    /// Its threads.
    pub threads: Threads,
    /// The process itself, where values by name are asked about.
    pub sight: Option<Replayed>,
}

impl Execution {
    /// All of a process of a case, of which at most so many bytes are kept.
    pub fn of(case: &Case, process: u32, memory: u64) -> anyhow::Result<Self> {
        let (mut execution, line) = Self::begin(case, process)?;
        execution.trace = windows::survey(line, memory)?;
        Ok(execution)
    }

    /// The same, but observes only as much of the end as a question turns out to need: `ask` gives
    /// the answer, or nothing if there must be more. Without an answer all has been observed.
    pub fn end_of<T>(
        case: &Case,
        process: u32,
        memory: u64,
        sight: Option<Replayed>,
        mut ask: impl FnMut(&Self) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<(Self, Option<T>)> {
        let (mut execution, mut line) = Self::begin(case, process)?;
        execution.sight = sight;
        let mut late = TailWindows::of(&line);
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

    /// How a process ended, and where it can be observed. Nothing has been yet.
    pub(crate) fn begin(case: &Case, process: u32) -> anyhow::Result<(Self, Timeline)> {
        let mut line = case.timeline(process)?;
        windows::prepare(&mut line);
        let end = line.end().map_err(fault_or_input)?.clone();
        let ending = match (end.ending, case.end_of(process)) {
            (Some(Ending::Exit(code)), _) => Some(Ending::Exit(code & 0xff)),
            (Some(Ending::Signal(signal)), _) => Some(Ending::Signal(signal)),
            (None, End::Killed(signal)) => Some(Ending::Signal(signal)),
            (None, _) => None,
        };
        let mut crashes = Vec::new();
        if let Some(Ending::Signal(_)) = end.ending {
            crashes = crashes_of(case, process)?;
        }
        let modules = crashes.first().map_or(&end.modules, |report| &report.modules);
        let program = case.program(modules)?;
        let known =
            |ending| Outcome { ending, crashes, notes: Vec::new(), refused: None, events: 0 };
        let (trace, outcome) = (Trace::default(), ending.map(known));
        let threads = Threads::of(case.recording(), process);
        let process = Some(process);
        Ok((Self { trace, program, outcome, observed: None, process, threads, sight: None }, line))
    }

    /// Reads a saved stream of events.
    pub fn open(events: &Path, program: &OsStr, notices: &Notices) -> anyhow::Result<Self> {
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
        let (name, program) = (program, program::executable(program)?);
        if trace.blocks.differs_from(&program) {
            notices.tell(&format!(
                "{} has changed since its events were saved; names and lines may be wrong",
                name.display()
            ));
        }
        let threads = Threads::default();
        Ok(Self {
            trace,
            program,
            outcome: None,
            observed: None,
            process: None,
            threads,
            sight: None,
        })
    }

    /// An answer as statements. Threads have their small numbers.
    pub fn view(&self, answer: &Slice, unfold: Unfold) -> View {
        let mut view = Viewer::new(&self.trace, &self.program).unfolding(unfold).view(answer);
        self.number_threads(&mut view);
        view
    }

    /// What is asked, explained. Threads have their small numbers.
    pub fn explained(&self, control: &Control, asked: &[Asked]) -> anyhow::Result<Explanation> {
        let mut explanation = explain(&self.trace, &self.program, control, asked);
        self.number_threads(&mut explanation.view);
        self.complete()?;
        Ok(explanation)
    }

    /// Gives threads their small numbers, which the trace does not know.
    pub fn number_threads(&self, view: &mut View) {
        for statement in &mut view.statements {
            let tick = statement.position.map_or(self.trace.tick(), |position| position.tick);
            let number = |kernel: &mut u32| *kernel = self.thread(*kernel, tick).0;
            statement.threads.iter_mut().for_each(number);
            statement.threads.sort_unstable();
            number(&mut statement.thread);
        }
    }

    /// The number of the thread to which the kernel had given an id.
    pub fn thread(&self, kernel: u32, tick: Tick) -> ThreadNumber {
        self.threads.number(kernel as i32, tick)
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
            let (stack, pointers) = (report.general[4], crash::pointers(report));
            let before = self.code_before().map(|code| (code, report.general));
            return Ended::Fault { pc: report.pc, code, stack, pointers, before };
        }
        let calls = Crash::of(report).calls_to_own();
        let calls = calls.into_iter().map(|(function, address)| (function, address.0)).collect();
        Ended::GaveUp { calls }
    }

    /// The bytes of the last instruction that was executed.
    fn code_before(&self) -> Option<Vec<u8>> {
        let (trace, mut bytes) = (&self.trace, vec![0; 15]);
        let last = trace.last_executed(trace.last_thread(), StepCount(trace.len()))?;
        let last = &trace.blocks.statics[last.instruction as usize];
        bytes.truncate(last.length.into());
        self.program.code_bytes(Address(last.pc), &mut bytes).then_some(bytes)
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

/// The crash that a process ended in, with files as they were recorded.
pub fn crashes_of(case: &Case, process: u32) -> anyhow::Result<Vec<CrashReport>> {
    let make = &mut |_| -> Box<dyn Consumer> { Box::new(events::Discard::default()) };
    let replayed = case.session().replay_and_report(process, Plan::default(), Shown::Nothing, make);
    let (replayed, mut crashes) = replayed.map_err(fault_or_input)?;
    if let Some(divergence) = replayed.divergence {
        return Err(fault_or_input(RunError::Diverged(Box::new(divergence))));
    }
    for report in &mut crashes {
        report.modules = case.as_recorded(&report.modules)?;
    }
    Ok(crashes)
}
