//! A client's wishes carried out: gdbstub has parsed them, the debugger does them.

use super::Facts;
use super::connection::{Client, Told};
use super::registers::{Amd64, Values};
use super::signals;
use crate::commands::{self, words};
use base::{Ending, ThreadNumber};
use gdbstub::common::{Pid, Signal, Tid};
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::target::ext::auxv::{Auxv, AuxvOps};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadRangeStepping, MultiThreadRangeSteppingOps, MultiThreadResume,
    MultiThreadResumeOps, MultiThreadSchedulerLocking, MultiThreadSchedulerLockingOps,
    MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::reverse_exec::{
    ReplayLogPosition, ReverseCont, ReverseContOps, ReverseStep, ReverseStepOps,
};
use gdbstub::target::ext::breakpoints::{BreakpointsOps, WatchKind};
use gdbstub::target::ext::catch_syscalls::{CatchSyscallPosition, CatchSyscallsOps};
use gdbstub::target::ext::exec_file::{ExecFile, ExecFileOps};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps, outputln};
use gdbstub::target::{Target, TargetError, TargetResult};
use investigate::debugging::points::Reason as Why;
use investigate::debugging::{Debugger, Instant, Patience, Stop, Watched};
use std::io;
use std::marker::PhantomData;
use symbols::Level;

/// One client and what it looks at.
pub struct Session<'case> {
    pub(super) debugger: Debugger<'case>,
    facts: Facts,
    pub(super) told: Told,
    wish: Wish,
    /// Why it has stopped last, if that has to be said.
    said: Option<String>,
    /// Whether gdb is setting registers back behind a call, one after the other: the general ones are as they were.
    restoring: bool,
    /// The breakpoint at system calls that gdb's `catch syscall` has set.
    pub(super) caught: Option<u32>,
    /// The system call that is about to be made, where that has been told.
    entered: Option<(Instant, ThreadNumber, u64)>,
    /// Whether a command has moved it, and the client is to see that with its next movement, which is none.
    arrived: bool,
}

/// How to move next.
#[derive(Clone, Copy)]
enum Wish {
    Continue,
    Step(ThreadNumber),
    /// Step while the pc is inside.
    Range(ThreadNumber, u64, u64),
    Back,
    StepBack(ThreadNumber),
}

type Reason = MultiThreadStopReason<u64>;

impl<'case> Session<'case> {
    pub fn new(debugger: Debugger<'case>, facts: Facts, told: Told) -> Self {
        Self {
            debugger,
            facts,
            told,
            wish: Wish::Continue,
            said: None,
            restoring: false,
            caught: None,
            entered: None,
            arrived: false,
        }
    }

    fn go(&mut self, patience: Patience<'_>) -> anyhow::Result<Option<Reason>> {
        self.restoring = false;
        if std::mem::take(&mut self.arrived) {
            return Ok(Some(self.reason(Stop::Moved)));
        }
        self.hear_signals()?;
        let entered = self.entered.take().filter(|(at, ..)| *at == self.debugger.instant());
        let stop = match self.wish {
            Wish::Continue => match entered {
                None => self.debugger.resume(patience)?,
                Some((_, thread, number)) => match self.debugger.run_past(thread, patience)? {
                    Stop::Moved => {
                        self.said = None;
                        return Ok(Some(self.system_call(number, CatchSyscallPosition::Return)));
                    }
                    other => other,
                },
            },
            Wish::Step(thread) => self.debugger.step(thread)?,
            Wish::Range(thread, start, end) => {
                self.debugger.step_within(thread, start..end, patience)?
            }
            Wish::Back => self.debugger.resume_back(patience)?,
            Wish::StepBack(thread) => self.debugger.step_back(thread)?,
        };
        if let Stop::Condition(id) = stop
            && Some(id) == self.caught
        {
            let (at, thread) = (self.debugger.instant(), self.debugger.running());
            let number = self.debugger.thread().general[0];
            self.entered = Some((at, thread, number));
            self.said = None;
            return Ok(Some(self.system_call(number, CatchSyscallPosition::Entry)));
        }
        self.said = words::stop(&mut self.debugger, &stop).filter(|_| !self.tells(&stop));
        Ok((stop != Stop::Interrupted).then(|| self.reason(stop)))
    }

    fn system_call(&self, number: u64, position: CatchSyscallPosition) -> Reason {
        Reason::CatchSyscall { tid: Some(tid(self.debugger.running())), number, position }
    }

    /// Stops at the signals that the client wants to hear of, if it has said which.
    fn hear_signals(&mut self) -> anyhow::Result<()> {
        if self.told.has_changed() {
            let told = self.told.clone();
            self.debugger.hear_signals(|signal| told.hears_of(signals::of(signal, &told)))?;
        }
        Ok(())
    }

    /// Whether a stop is one that the client knows of by itself.
    fn tells(&self, stop: &Stop) -> bool {
        match stop {
            Stop::Point(Why::Signal(signal)) => {
                self.told.hears_of(signals::of(*signal, &self.told))
            }
            _ => false,
        }
    }

    /// The call that gdb has selected, by its number, inlined ones counted.
    fn level(&mut self, frame: usize) -> Level {
        let call = self
            .debugger
            .with_scene(None, |scene| scene.each_call().nth(frame).map(|call| call.level));
        call.ok().flatten().unwrap_or_default()
    }

    /// A command of a script that comes with us: `wd FRAME COMMAND`, answered with whether it has moved and where to.
    fn scripted(&mut self, text: &str) -> String {
        let (frame, line) = text.split_once(' ').unwrap_or((text, ""));
        if line == "stop" {
            return format!("stayed\n{}", self.said.take().unwrap_or_default());
        }
        let level = frame.parse().map_or_else(|_| Level::default(), |frame| self.level(frame));
        let said = commands::run(&mut self.debugger, level, line);
        let moved = match said.moved {
            true => format!("moved {}", self.debugger.running()),
            false => "stayed".into(),
        };
        format!("{moved}\n{}", said.text)
    }

    fn reason(&self, stop: Stop) -> Reason {
        let tid = tid(self.debugger.running());
        let signal = |number: i32| Signal(signals::of(number, &self.told));
        match stop {
            Stop::Point(Why::Signal(number)) if self.tells(&stop) => {
                Reason::SignalWithThread { tid, signal: signal(number) }
            }
            // gdb knows of none of these, and would go on if they were told as breakpoints of its own.
            Stop::Moved | Stop::Condition(_) | Stop::Point(_) => {
                Reason::SignalWithThread { tid, signal: Signal::SIGTRAP }
            }
            Stop::Interrupted => Reason::SignalWithThread { tid, signal: Signal::SIGINT },
            Stop::Breakpoint => Reason::SwBreak(tid),
            Stop::Watched(Watched { watch, .. }) => {
                let kind = match (watch.reads, watch.writes) {
                    (true, true) => WatchKind::ReadWrite,
                    (true, false) => WatchKind::Read,
                    _ => WatchKind::Write,
                };
                Reason::Watch { tid, kind, addr: watch.address }
            }
            Stop::Beginning => Reason::ReplayLog { tid: Some(tid), pos: ReplayLogPosition::Begin },
            Stop::End(Some(Ending::Signal(number))) => {
                Reason::SignalWithThread { tid, signal: signal(number) }
            }
            Stop::Diverted(end) => match words::signal_of(&end) {
                Some(number) => Reason::SignalWithThread { tid, signal: signal(number) },
                None => Reason::ReplayLog { tid: Some(tid), pos: ReplayLogPosition::End },
            },
            Stop::End(_) => Reason::ReplayLog { tid: Some(tid), pos: ReplayLogPosition::End },
        }
    }
}

fn tid(thread: ThreadNumber) -> Tid {
    Tid::new(thread.0 as usize).unwrap_or(Tid::MIN)
}

fn number(tid: Tid) -> ThreadNumber {
    ThreadNumber(tid.get() as u32)
}

impl Target for Session<'_> {
    type Arch = Amd64;
    type Error = anyhow::Error;

    fn base_ops(&mut self) -> BaseOps<'_, Amd64, anyhow::Error> {
        BaseOps::MultiThread(self)
    }

    fn guard_rail_implicit_sw_breakpoints(&self) -> bool {
        true
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_auxv(&mut self) -> Option<AuxvOps<'_, Self>> {
        Some(self)
    }

    fn support_catch_syscalls(&mut self) -> Option<CatchSyscallsOps<'_, Self>> {
        Some(self)
    }

    fn support_exec_file(&mut self) -> Option<ExecFileOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Session<'_> {
    fn read_registers(&mut self, registers: &mut Values, tid: Tid) -> TargetResult<(), Self> {
        let threads = self.debugger.threads().map_err(TargetError::Fatal)?;
        let found = threads.iter().find(|(thread, _)| *thread == number(tid));
        *registers = Values::of(&found.ok_or(TargetError::NonFatal)?.1);
        Ok(())
    }

    fn write_registers(&mut self, values: &Values, tid: Tid) -> TargetResult<(), Self> {
        let (general, pc) = values.general().ok_or(TargetError::NonFatal)?;
        let thread = self.debugger.thread();
        let was_away = self.debugger.is_away();
        if self.restoring && (thread.general, thread.pc) == (general, pc) {
            return Ok(());
        }
        // Vector registers cannot be set: refused, lest a call get other arguments than it was given.
        let running = number(tid) == self.debugger.running();
        let can = running && (was_away || values.has_vectors_of(&Values::of(&thread)));
        let written = can && self.debugger.write_registers(&general, pc);
        self.restoring = written && was_away && !self.debugger.is_away();
        if written { Ok(()) } else { Err(TargetError::NonFatal) }
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8], _: Tid) -> TargetResult<usize, Self> {
        match self.debugger.read(start, data) {
            0 if !data.is_empty() => Err(TargetError::NonFatal),
            read => Ok(read),
        }
    }

    fn write_addrs(&mut self, start: u64, data: &[u8], _: Tid) -> TargetResult<(), Self> {
        match self.debugger.write(start, data) {
            true => Ok(()),
            false => Err(TargetError::NonFatal),
        }
    }

    fn list_active_threads(&mut self, each: &mut dyn FnMut(Tid)) -> anyhow::Result<()> {
        self.debugger.threads()?.iter().for_each(|(thread, _)| each(tid(*thread)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadResume for Session<'_> {
    fn resume(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> anyhow::Result<()> {
        self.wish = Wish::Continue;
        Ok(())
    }

    fn set_resume_action_continue(&mut self, _: Tid, _: Option<Signal>) -> anyhow::Result<()> {
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_range_step(&mut self) -> Option<MultiThreadRangeSteppingOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }

    fn support_reverse_step(&mut self) -> Option<ReverseStepOps<'_, Tid, Self>> {
        Some(self)
    }

    fn support_reverse_cont(&mut self) -> Option<ReverseContOps<'_, Tid, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Session<'_> {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> anyhow::Result<()> {
        self.wish = Wish::Step(number(tid));
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Session<'_> {
    /// The recording says who runs; a step is over when its thread has made it.
    fn set_resume_action_scheduler_lock(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

impl MultiThreadRangeStepping for Session<'_> {
    fn set_resume_action_range_step(
        &mut self,
        tid: Tid,
        start: u64,
        end: u64,
    ) -> anyhow::Result<()> {
        self.wish = Wish::Range(number(tid), start, end);
        Ok(())
    }
}

impl ReverseStep<Tid> for Session<'_> {
    fn reverse_step(&mut self, tid: Tid) -> anyhow::Result<()> {
        self.wish = Wish::StepBack(number(tid));
        Ok(())
    }
}

impl ReverseCont<Tid> for Session<'_> {
    fn reverse_cont(&mut self) -> anyhow::Result<()> {
        self.wish = Wish::Back;
        Ok(())
    }
}

/// The part of a text that a client asks for.
fn part(text: &[u8], offset: u64, length: usize, into: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)).unwrap_or(&[]);
    let taken = rest.len().min(length).min(into.len());
    into[..taken].copy_from_slice(&rest[..taken]);
    taken
}

impl Auxv for Session<'_> {
    fn get_auxv(&self, offset: u64, length: usize, into: &mut [u8]) -> TargetResult<usize, Self> {
        Ok(part(&self.facts.auxv, offset, length, into))
    }
}

impl ExecFile for Session<'_> {
    fn get_exec_file(
        &self,
        _: Option<Pid>,
        offset: u64,
        length: usize,
        into: &mut [u8],
    ) -> TargetResult<usize, Self> {
        Ok(part(self.facts.program.as_bytes(), offset, length, into))
    }
}

impl MonitorCmd for Session<'_> {
    fn handle_monitor_cmd(
        &mut self,
        command: &[u8],
        mut out: ConsoleOutput<'_>,
    ) -> anyhow::Result<()> {
        let text = String::from_utf8_lossy(command);
        let text = text.trim();
        let said = if let Some(rest) = text.strip_prefix("wd ") {
            self.scripted(rest.trim_start())
        } else if let Some(rest) = text.strip_prefix("wd! ") {
            // A client that looks again only where it has moved itself.
            let said = self.scripted(rest.trim_start());
            self.arrived = said.starts_with("moved");
            said
        } else {
            commands::run(&mut self.debugger, Level::default(), text).text
        };
        outputln!(out, "{said}");
        Ok(())
    }
}

/// A movement is over when it has been made, or when the client says something, which can only be Ctrl-C.
pub struct Loop<'case>(PhantomData<&'case ()>);

impl<'case> BlockingEventLoop for Loop<'case> {
    type Target = Session<'case>;
    type Connection = Client;
    type StopReason = Reason;

    fn wait_for_stop_reason(
        session: &mut Session<'case>,
        stream: &mut Client,
    ) -> Result<Event<Reason>, WaitForStopReasonError<anyhow::Error, io::Error>> {
        let mut heard = || stream.peek().map_or(true, |byte| byte.is_some());
        match session.go(&mut heard).map_err(WaitForStopReasonError::Target)? {
            Some(reason) => Ok(Event::TargetStopped(reason)),
            None => {
                stream.read().map(Event::IncomingData).map_err(WaitForStopReasonError::Connection)
            }
        }
    }

    fn on_interrupt(session: &mut Session<'case>) -> anyhow::Result<Option<Reason>> {
        let tid = tid(session.debugger.running());
        Ok(Some(Reason::SignalWithThread { tid, signal: Signal::SIGINT }))
    }
}
