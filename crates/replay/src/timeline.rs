//! One process of a recording as a line in time: any moment of it can be gone to, forwards and
//! backwards, and any window of it observed.
//!
//! The first time that the end is asked for, the process is replayed once and leaves **checkpoints**
//! on its way: forks of the runner, which stand still and cost only the memory that changes later.
//! When there are too many, or they take too much memory, every second one is given up, so that both
//! are bounded and their distance follows the length of the run. Whatever is asked afterwards starts from the nearest one.

use engine::control::{Goal, Instant, Stopped};
use engine::host::RunError;
use engine::host::replayer::{ReplayProcess, Replayer};
use engine::log_listen::LogSink;
use events::condition::Condition;
use events::{Consumer, Plan};
use recording::log::ThreadData;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

/// A process of a recording, ready to be asked.
pub struct Timeline {
    replayer: Replayer,
    /// By time: processes that stand still there.
    checkpoints: BTreeMap<u64, ReplayProcess>,
    /// Ticks between checkpoints.
    distance: u64,
    limit: usize,
    /// Bytes that they may take together.
    memory: u64,
    end: Option<Stopped>,
}

/// Ticks between checkpoints at first: some tenths of a second.
const DISTANCE: u64 = 20_000_000;

/// Checkpoints that are kept, if nobody says otherwise.
pub const CHECKPOINTS: usize = 32;

/// Memory that they may take, if nobody says otherwise; where the machine has little, a quarter of
/// what is free.
pub const MEMORY: u64 = 2 << 30;

/// The kernel is asked for their memory whenever so many more have been left: it has to look at
/// every page.
const ASK_EVERY: usize = 4;

/// A process that stands still at a moment that was asked for.
pub struct StoppedProcess {
    pub(crate) runner: ReplayProcess,
    /// Where it is.
    pub at: Stopped,
}

/// A part of a run to be observed: from one moment, or the beginning, to another, or the end.
pub struct Window {
    /// Where it begins.
    pub from: Option<Instant>,
    /// Where it ends.
    pub to: Option<Instant>,
    /// What to observe.
    pub plan: Plan,
    /// Has had everything when the window has been observed.
    pub consumer: Box<dyn Consumer>,
}

impl Window {
    fn observe(self, runner: &ReplayProcess) -> io::Result<Stopped> {
        if let Some(from) = self.from {
            let stopped = runner.run(Goal::At(from))?;
            if stopped.divergence.is_some() {
                return Ok(stopped);
            }
        }
        runner.observe(self.to.map_or(Goal::End, Goal::At), self.plan, self.consumer)
    }
}

impl StoppedProcess {
    /// Reads guest memory; how many bytes there are.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.runner.read(address, into)
    }

    /// The moment.
    pub fn instant(&self) -> Instant {
        Instant { time: self.at.time, pc: Some(self.at.thread.pc) }
    }
}

/// A process's share of the memory that it has; nothing if the kernel does not tell.
fn proportional_memory(process: i32) -> u64 {
    bytes_told(&format!("/proc/{process}/smaps_rollup"), "Pss:").unwrap_or(0)
}

/// What processes could still be given.
fn free_memory() -> Option<u64> {
    bytes_told("/proc/meminfo", "MemAvailable:")
}

/// A figure of the kernel's, which tells it in kilobytes.
fn bytes_told(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kilobytes)
}

impl Timeline {
    /// Takes up a replay that has just been started.
    pub(crate) fn new(mut replayer: Replayer) -> Self {
        let first = replayer.take_first();
        let checkpoints = first.map(|runner| (0, runner)).into_iter().collect();
        let (distance, limit) = (DISTANCE, CHECKPOINTS);
        let memory = free_memory().map_or(MEMORY, |free| MEMORY.min(free / 4));
        Self { replayer, checkpoints, distance, limit, memory, end: None }
    }

    /// Keeps at most so many checkpoints, two at least.
    pub fn limit_checkpoints(&mut self, limit: usize) {
        self.limit = limit.max(2);
    }

    /// Lets them take at most so many bytes of memory together, but for the first of them.
    pub fn limit_memory(&mut self, bytes: u64) {
        self.memory = bytes;
    }

    /// Leaves them at first so many ticks apart.
    pub fn space_checkpoints(&mut self, ticks: u64) {
        self.distance = ticks.max(1);
    }

    /// Checkpoints that there are, by time.
    pub fn checkpoints(&self) -> impl Iterator<Item = u64> + '_ {
        self.checkpoints.keys().copied()
    }

    /// Where and how the process ended.
    pub fn end(&mut self) -> Result<&Stopped, RunError> {
        if self.end.is_none() {
            let end = self.first_pass();
            self.end = Some(self.sound(end)?);
        }
        Ok(self.end.as_ref().expect("just found"))
    }

    /// Replays all of the process once, and leaves checkpoints.
    fn first_pass(&mut self) -> io::Result<Stopped> {
        let mut runner = self.before(u64::MAX)?;
        let mut left = 0;
        loop {
            left += 1;
            let time = runner.place()?.time;
            let next = Instant { time: time + self.distance, pc: None };
            let stopped = runner.run(Goal::At(next))?;
            if stopped.ended {
                self.keep_to_memory();
                return Ok(stopped);
            }
            let copy = runner.checkpoint()?;
            self.checkpoints.insert(stopped.time, std::mem::replace(&mut runner, copy));
            if self.checkpoints.len() > self.limit {
                self.thin_out();
            }
            if left % ASK_EVERY == 0 {
                self.keep_to_memory();
            }
        }
    }

    /// Gives checkpoints up until the others, or the first alone, take no more than they may.
    fn keep_to_memory(&mut self) {
        while self.checkpoints.len() > 1 && self.memory_used() > self.memory {
            self.thin_out();
        }
    }

    /// What the checkpoints take: pages that several have count once in all.
    pub fn memory_used(&self) -> u64 {
        self.checkpoints.values().map(|runner| proportional_memory(runner.process())).sum()
    }

    fn thin_out(&mut self) {
        self.distance *= 2;
        let mut number = 0;
        self.checkpoints.retain(|_, _| {
            number += 1;
            number % 2 == 1
        });
    }

    /// A copy of the last checkpoint that is not behind `time`.
    fn before(&mut self, time: u64) -> io::Result<ReplayProcess> {
        let (_, runner) =
            self.checkpoints.range(..=time).next_back().ok_or(io::ErrorKind::NotFound)?;
        runner.checkpoint()
    }

    /// Makes of a replay that does not answer what there is to say about it, and of one that went
    /// another way than recorded an error.
    fn sound(&mut self, answer: io::Result<Stopped>) -> Result<Stopped, RunError> {
        match answer {
            Ok(Stopped { divergence: Some(divergence), .. }) => {
                Err(RunError::Diverged(Box::new(divergence)))
            }
            Ok(stopped) => Ok(stopped),
            Err(error) => Err(self.replayer.failure(&error)),
        }
    }

    /// Goes to a moment; to the end if it is later.
    pub fn seek(&mut self, to: Instant) -> Result<StoppedProcess, RunError> {
        self.go(to.time, Goal::At(to))
    }

    /// Goes to the end.
    pub fn seek_end(&mut self) -> Result<StoppedProcess, RunError> {
        let time = self.end()?.time;
        self.go(time, Goal::End)
    }

    /// Goes to where one of these instructions is about to be executed for the N-th time in all, from the
    /// beginning; to the end if it never is. `thread`: only what this one executes counts.
    pub fn seek_hit(
        &mut self,
        pcs: &[u64],
        thread: Option<i32>,
        count: u64,
    ) -> Result<StoppedProcess, RunError> {
        let mut pcs = pcs.to_vec();
        pcs.sort_unstable();
        pcs.dedup();
        self.go(0, Goal::Hit { pcs, thread, count, until: None, conditions: Vec::new() })
    }

    /// How often these instructions are executed in all.
    pub fn count_hits(&mut self, pcs: &[u64], thread: Option<i32>) -> Result<u64, RunError> {
        Ok(self.seek_hit(pcs, thread, 0)?.at.hits)
    }

    /// Goes on from where a process stands, to a later moment or, without one, to the end.
    pub fn go_on(
        &mut self,
        from: &mut StoppedProcess,
        to: Option<Instant>,
    ) -> Result<(), RunError> {
        let answer = from.runner.run(to.map_or(Goal::End, Goal::At));
        from.at = self.sound(answer)?;
        Ok(())
    }

    /// Goes on from where a process stands to where one of these instructions is about to be executed for
    /// the N-th time from there on, what it is about to execute now not counted; not further than to `until`,
    /// or to the end. Without `count` it only counts.
    pub fn go_on_to_hit(
        &mut self,
        from: &mut StoppedProcess,
        (pcs, thread): (&[u64], Option<i32>),
        count: u64,
        until: Option<Instant>,
    ) -> Result<(), RunError> {
        let mut pcs = pcs.to_vec();
        pcs.sort_unstable();
        pcs.dedup();
        let conditions = Vec::new();
        let answer = from.runner.run(Goal::Hit { pcs, thread, count, until, conditions });
        from.at = self.sound(answer)?;
        Ok(())
    }

    /// The same, by any thread; where instructions have conditions, only executions count at which one of them holds.
    pub fn go_on_to_hit_if(
        &mut self,
        from: &mut StoppedProcess,
        (pcs, conditions): (&[u64], &[(u64, Condition)]),
        count: u64,
        until: Option<Instant>,
    ) -> Result<(), RunError> {
        let mut pcs = pcs.to_vec();
        pcs.sort_unstable();
        pcs.dedup();
        let (thread, conditions) = (None, conditions.to_vec());
        let answer = from.runner.run(Goal::Hit { pcs, thread, count, until, conditions });
        from.at = self.sound(answer)?;
        Ok(())
    }

    /// Goes on from where a process stands to behind the next instruction of a thread, and on while that is within some
    /// code and none of `stops`; not further than to `until`, or to the end.
    pub fn go_on_stepping(
        &mut self,
        from: &mut StoppedProcess,
        thread: i32,
        (within, stops): (Range<u64>, Vec<u64>),
        until: Option<Instant>,
    ) -> Result<(), RunError> {
        let answer = from.runner.run(Goal::Step { thread, within, stops, until });
        from.at = self.sound(answer)?;
        Ok(())
    }

    /// All threads that live where a process stands.
    pub fn threads(&mut self, of: &StoppedProcess) -> Result<Vec<ThreadData>, RunError> {
        of.runner.threads().map_err(|error| self.replayer.failure(&error))
    }

    /// Goes to the beginning.
    pub fn begin(&mut self) -> Result<StoppedProcess, RunError> {
        let runner = self.before(0).map_err(|error| self.replayer.failure(&error))?;
        let at = runner.place();
        Ok(StoppedProcess { at: self.sound(at)?, runner })
    }

    /// Another process that stands where one does.
    pub fn copy(&mut self, of: &StoppedProcess) -> Result<StoppedProcess, RunError> {
        let runner = of.runner.checkpoint().map_err(|error| self.replayer.failure(&error))?;
        Ok(StoppedProcess { runner, at: of.at.clone() })
    }

    /// Goes on from where a process stands, to a later moment or, without one, to the end, and observes
    /// what happens. The consumer has had everything when this returns.
    pub fn observe_on(
        &mut self,
        from: &mut StoppedProcess,
        to: Option<Instant>,
        plan: Plan,
        consumer: Box<dyn Consumer>,
    ) -> Result<(), RunError> {
        let answer = from.runner.observe(to.map_or(Goal::End, Goal::At), plan, consumer);
        from.at = self.sound(answer)?;
        Ok(())
    }

    /// From the last checkpoint that is at `time` or before to a goal.
    fn go(&mut self, time: u64, goal: Goal) -> Result<StoppedProcess, RunError> {
        let runner = self.before(time).map_err(|error| self.replayer.failure(&error))?;
        let answer = runner.run(goal);
        let at = self.sound(answer)?;
        Ok(StoppedProcess { runner, at })
    }

    /// Goes to a moment, and from there to a goal with everything written to a log.
    pub(crate) fn extract(
        &mut self,
        from: Instant,
        to: Goal,
        log: Box<dyn LogSink>,
    ) -> Result<Stopped, RunError> {
        let start = self.seek(from)?;
        let answer = start.runner.extract(to, log);
        self.sound(answer)
    }

    /// Observes windows, as many at a time as there are processors; where each stopped, in their
    /// order.
    pub fn observe_all(&mut self, windows: Vec<Window>) -> Result<Vec<Stopped>, RunError> {
        let mut work = Vec::new();
        for (index, window) in windows.into_iter().enumerate() {
            let runner = self.before(window.from.map_or(0, |from| from.time));
            let runner = runner.map_err(|error| self.replayer.failure(&error))?;
            work.push((index, runner, window));
        }
        let workers = available_parallelism().map_or(1, usize::from).min(work.len());
        let (work, answers) = (Mutex::new(work.into_iter()), Mutex::new(BTreeMap::new()));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let next = work.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some((index, runner, window)) = next else { return };
                        let answer = window.observe(&runner);
                        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                        answers.insert(index, answer);
                    }
                });
            }
        });
        let answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        answers.into_values().map(|answer| self.sound(answer)).collect()
    }

    /// Observes a window: from one moment, or the beginning, to another, or the end. The consumer
    /// has had everything when this returns.
    pub fn observe(
        &mut self,
        from: Option<Instant>,
        to: Option<Instant>,
        plan: Plan,
        consumer: Box<dyn Consumer>,
    ) -> Result<Stopped, RunError> {
        let mut start = match from {
            Some(from) => self.seek(from)?,
            None => self.begin()?,
        };
        self.observe_on(&mut start, to, plan, consumer)?;
        Ok(start.at)
    }
}
