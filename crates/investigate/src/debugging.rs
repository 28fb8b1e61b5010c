//! Looking around in a recording: a **debugger** stands at a position of one process, moves forwards and
//! backwards, by instructions and to places and watched memory, and shows threads, registers and memory as they
//! were there. It knows no protocol.
//!
//! Nothing is ever executed backwards. To go back means to look for the last time that something happened
//! in ever longer windows before the present ([`backwards`]), and to replay to it from a checkpoint.
//! What a replay passes is told by the engine: executions of places are counted by the runner, accesses to watched memory
//! are suspicions of a shadow that is painted there ([`watching`]), and single steps are read out of what was executed
//! ([`executed`]).
//!
//! A session is more than movements: breakpoints with conditions, at calls and system calls ([`conditions`]), exact moments to stop at
//! ([`points`]: executions in slices, findings, signals, threads), steps by lines ([`lines`]), what there is to see ([`looking`]),
//! slices ([`slices`]), where a value was made ([`origin`]), moments that are kept ([`checkpoints`]), and runs that leave the recording
//! ([`altering`]).

pub mod altering;
mod backwards;
mod breaks;
pub mod checkpoints;
pub mod conditions;
mod executed;
mod forks;
mod forwards;
mod happenings;
pub mod image;
mod kernel;
pub mod lines;
mod looking;
pub mod origin;
pub mod points;
pub mod slices;
mod watching;

pub use events::condition as bytecode;
pub use replay::Instant;
pub use replay::diversion::DiversionEnd;
pub use watching::{Watch, Watched};

use crate::case::Case;
use crate::error::fault_or_input;
use crate::moments;
use crate::threads::Threads;
use crate::whatif::{Prepared, WhatIf};
use altering::Away;
use anyhow::Context;
use base::{Ending, Finding, ModuleMap, Moment, ThreadNumber, Tick};
use bytecode::Condition;
use checkpoints::Checkpoint;
use conditions::Breakpoint;
use events::patch::Patch;
use points::{Point, Reason};
use recording::log::ThreadData;
use replay::{StoppedProcess, Timeline};
use slices::Numbered;
use std::collections::BTreeMap;
use std::sync::Arc;
use symbols::Program;

/// Asked now and then on a long way: whether to stop where it is.
pub type Patience<'a> = &'a mut dyn FnMut() -> bool;

/// Why a movement has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was as long as was asked for.
    Moved,
    /// A thread is about to execute an instruction that has a breakpoint.
    Breakpoint,
    /// Watched memory was accessed: going forwards just now, going backwards by the instruction that comes
    /// next.
    Watched(Watched),
    /// A breakpoint with a condition, by its number, stops it.
    Condition(u32),
    /// It is a moment to stop at.
    Point(Reason),
    /// It was asked to stop on the way.
    Interrupted,
    /// There is nothing before.
    Beginning,
    /// There is nothing behind; how the process ended, if the recording says so.
    End(Option<Ending>),
    /// The diversion is over.
    Diverted(DiversionEnd),
}

/// A position of one process of a case, to be moved.
pub struct Debugger<'case> {
    case: &'case Case,
    process: u32,
    line: Timeline,
    at: StoppedProcess,
    /// A process that stands a little earlier: most movements are short.
    near: Option<StoppedProcess>,
    numbers: Threads,
    /// Instructions, with conditions of which one has to hold if there are any.
    breakpoints: BTreeMap<u64, Vec<Condition>>,
    watches: Vec<Watch>,
    conditional: Vec<Breakpoint>,
    next_id: u32,
    points: Vec<Point>,
    /// Whether all signals are among them.
    all_signals: bool,
    slices: Vec<Numbered>,
    /// Between which moments slices look, if not everywhere.
    recorded: Option<(Moment, Option<Moment>)>,
    checkpoints: Vec<Checkpoint>,
    found: Option<Vec<Finding>>,
    /// What is altered at a moment that is still to come.
    armed: Option<Prepared>,
    /// What is altered here, with the next movement forwards; in words.
    written: Vec<Patch>,
    words: Option<String>,
    /// The run that has left the recording; `at` stands where it did.
    away: Option<Away>,
    what_if: Option<WhatIf<'case>>,
    /// The program as it is loaded somewhere, and with all code it ever had.
    known: Option<(Vec<ModuleMap>, Arc<Program>)>,
    whole: Option<Arc<Program>>,
}

/// How many ticks before the present the nearby process stands, at least and at most.
const NEAR: std::ops::Range<u64> = 20_000..400_000;

impl<'case> Debugger<'case> {
    /// Stands at a moment of a process.
    pub fn at(case: &'case Case, process: u32, moment: &Moment) -> anyhow::Result<Self> {
        let mut line = case.timeline(process)?;
        let at = moments::seek(case, process, &mut line, moment)?;
        let numbers = Threads::of(case.recording(), process);
        Ok(Self {
            case,
            process,
            line,
            at,
            near: None,
            numbers,
            breakpoints: BTreeMap::new(),
            watches: Vec::new(),
            conditional: Vec::new(),
            next_id: 0,
            points: Vec::new(),
            all_signals: false,
            slices: Vec::new(),
            recorded: None,
            checkpoints: Vec::new(),
            found: None,
            armed: None,
            written: Vec::new(),
            words: None,
            away: None,
            what_if: None,
            known: None,
            whole: None,
        })
    }

    /// The process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// The case that it is of.
    pub fn case(&self) -> &'case Case {
        self.case
    }

    /// Goes to a moment.
    pub fn seek(&mut self, moment: &Moment) -> anyhow::Result<()> {
        self.leave_diversion();
        self.at = moments::seek(self.case, self.process, &mut self.line, moment)?;
        Ok(())
    }

    /// The moment; in a diversion, the one at which it left the recording.
    pub fn instant(&self) -> Instant {
        self.at.instant()
    }

    /// The files in memory.
    pub fn modules(&self) -> &[ModuleMap] {
        self.diversion().map_or(&self.at.at.modules, |diversion| &diversion.diverted.modules)
    }

    /// The thread that is about to run, and its registers.
    pub fn thread(&self) -> ThreadData {
        if let Some(thread) = self.thread_away() {
            return thread;
        }
        let mut thread = self.at.at.thread.clone();
        self.overlay_registers(&mut thread);
        thread
    }

    /// The number of the thread that is about to run.
    pub fn running(&self) -> ThreadNumber {
        let kernel =
            self.diversion().map_or(self.at.at.thread.number, |it| it.diverted.thread.number);
        self.numbers.number(kernel, Tick(self.at.at.time))
    }

    /// All threads that live, by number.
    pub fn threads(&mut self) -> anyhow::Result<Vec<(ThreadNumber, ThreadData)>> {
        let own = self.thread();
        if self.at.at.ended && self.away.is_none() {
            return Ok(vec![(self.running(), own)]);
        }
        let mut all = match self.diversion() {
            Some(diversion) => diversion.threads().unwrap_or_default(),
            None => self.line.threads(&self.at).map_err(fault_or_input)?,
        };
        match all.iter_mut().find(|thread| thread.number == own.number) {
            Some(known) => *known = own,
            None => all.push(own),
        }
        let now = Tick(self.at.at.time);
        let numbered = all.into_iter().map(|data| (self.numbers.number(data.number, now), data));
        let mut numbered: Vec<_> = numbered.collect();
        numbered.sort_by_key(|(number, _)| *number);
        Ok(numbered)
    }

    /// Reads memory as it is now; how many bytes there are.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        if let Some(diversion) = self.diversion() {
            return diversion.read(address, into);
        }
        let read = self.at.read(address, into);
        self.overlay(address, &mut into[..read]);
        read
    }

    /// Stops from now on where an instruction is about to be executed, or no longer. Whether that is new.
    pub fn set_breakpoint(&mut self, pc: u64, there: bool) -> bool {
        match there {
            true => self.breakpoints.insert(pc, Vec::new()).is_none(),
            false => self.breakpoints.remove(&pc).is_some(),
        }
    }

    /// Stops from now on where an instruction is about to be executed and one of some conditions holds.
    pub fn set_conditional(&mut self, pc: u64, conditions: Vec<Condition>) {
        self.breakpoints.insert(pc, conditions);
    }

    /// Stops from now on where memory is accessed.
    pub fn add_watch(&mut self, watch: Watch) {
        self.watches.push(watch);
    }

    /// Does so no longer. Whether it did.
    pub fn remove_watch(&mut self, watch: Watch) -> bool {
        let found = self.watches.iter().position(|known| *known == watch);
        found.map(|at| self.watches.swap_remove(at)).is_some()
    }

    /// Whether the recording ends here.
    pub fn end(&self) -> Option<Stop> {
        if self.away.is_some() {
            return None;
        }
        self.at.at.ended.then_some(Stop::End(self.at.at.ending))
    }

    fn kernel_number(&self, thread: ThreadNumber) -> anyhow::Result<i32> {
        self.numbers.kernel(thread).with_context(|| format!("there is no thread {thread}"))
    }

    /// A process of its own that stands at a time, or at the beginning if that is later.
    fn standing_at(&mut self, time: u64) -> anyhow::Result<StoppedProcess> {
        let to = Instant { time, pc: None };
        let near = self.near.as_ref().map(|near| near.at.time);
        if near.is_none_or(|near| near > time || time - near > NEAR.end) {
            let before = Instant { time: time.saturating_sub(NEAR.start), pc: None };
            self.near = Some(self.line.seek(before).map_err(fault_or_input)?);
        }
        let near = self.near.as_ref().context("nothing stands nearby")?;
        let mut copy = self.line.copy(near).map_err(fault_or_input)?;
        if copy.at.time < time {
            self.line.go_on(&mut copy, Some(to)).map_err(fault_or_input)?;
        }
        Ok(copy)
    }

    /// Goes to the N-th execution of an instruction by a thread, counted from the beginning of a time.
    fn go_to_execution(
        &mut self,
        from: u64,
        thread: i32,
        (pc, nth): (u64, u64),
    ) -> anyhow::Result<()> {
        let mut standing = self.standing_at(from)?;
        let is_first = standing.at.thread.pc == pc && standing.at.thread.number == thread;
        let left = nth - u64::from(is_first);
        if left > 0 {
            let place = (&[pc][..], Some(thread));
            self.line.go_on_to_hit(&mut standing, place, left, None).map_err(fault_or_input)?;
        }
        self.at = standing;
        Ok(())
    }
}
