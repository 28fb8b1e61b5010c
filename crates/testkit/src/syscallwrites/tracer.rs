//! The loop: stop every process of a program's tree at its system calls and compare.
//!
//! No safe interface tells of real-time signals: a program that is sent one is ended there.

use super::calls::{Company, company, name, remapped, replaces_memory, show};
use super::snapshot::Snapshot;
use super::{Call, Table, Tally};
use crate::singlestep::{Process, Registers, launch};
use anyhow::Context;
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::ops::Range;
use std::process::Stdio;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;
use syscalls::number as n;

/// Memory of the process that is stopped.
pub struct Memory<'a>(&'a Process);

impl Memory<'_> {
    /// Fills `out` from `address`; `false` if not all of it is there.
    #[must_use]
    pub fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let length = out.len();
        self.0.read(&[(address, length)], out) == length
    }
}

/// Rows seen less often than this are always compared.
const RARE: u64 = 10;
/// What each call earns for copying, and the most that is ever copied at once.
const ALLOWANCE: u64 = 1 << 20;
const MOST: u64 = 1 << 30;
/// Answers that only tracers see: the call was interrupted and may be made again.
const RESTARTS: Range<i64> = -516..-511;

/// Runs a command and compares its system calls with the table, to its end or until the time is over.
///
/// # Errors
/// When it cannot be started or followed.
pub fn trace<T: Table>(
    command: &[OsString],
    output: Stdio,
    limit: Duration,
    table: &T,
) -> anyhow::Result<Tally> {
    let root = launch(command, output)?;
    let follow = Options::PTRACE_O_EXITKILL
        | Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC;
    ptrace::setoptions(root, follow)?;
    let mut tracer = Tracer {
        table,
        // It is at the end of its exec.
        tasks: HashMap::from([(root, Task { inside: true, ..Task::default() })]),
        threaded: HashSet::new(),
        shared: HashSet::new(),
        credit: ALLOWANCE,
        tally: Tally::default(),
    };
    resume(root, None);
    // Whoever waits for something that never comes would keep us waiting too.
    let (ended, end) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let is_late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        is_late.then(|| signal::kill(root, Signal::SIGKILL))
    });
    tracer.run(root, &watch)?;
    tracer.tally.cut_short |= watch.is_finished();
    drop(ended);
    Ok(tracer.tally)
}

struct Tracer<'a, T: Table> {
    table: &'a T,
    tasks: HashMap<Pid, Task<T::Before>>,
    /// Processes that have, or had, several threads.
    threaded: HashSet<Pid>,
    /// Processes that share memory without waiting for each other.
    shared: HashSet<Pid>,
    credit: u64,
    tally: Tally,
}

/// A thread.
struct Task<B> {
    /// Its first stop is not a signal of its own.
    fresh: bool,
    /// It is inside a call whose beginning was not seen.
    inside: bool,
    /// The call under way.
    pending: Option<Pending<B>>,
    /// The call made last, which `restart_syscall` goes on with.
    last: Option<Call>,
    /// Where the kernel writes whenever it likes (`rseq`).
    scratch: Range<u64>,
    /// How much memory it had last.
    size: u64,
}

struct Pending<B> {
    call: Call,
    before: B,
    row: Option<String>,
    snapshot: Option<Snapshot>,
}

impl<B> Default for Task<B> {
    fn default() -> Self {
        Self { fresh: false, inside: false, pending: None, last: None, scratch: 0..0, size: 0 }
    }
}

fn resume(pid: Pid, signal: Option<Signal>) {
    // It may have been killed meanwhile; then waitpid will tell.
    let _ = ptrace::syscall(pid, signal);
}

impl<T: Table> Tracer<'_, T> {
    fn run<W>(&mut self, root: Pid, watch: &JoinHandle<W>) -> anyhow::Result<()> {
        let any = Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD);
        while !self.tasks.is_empty() {
            if !self.tasks.contains_key(&root) && watch.is_finished() {
                self.end();
            }
            match waitpid(None, any) {
                Ok(status) => self.stopped(status)?,
                Err(Errno::EINTR) => {}
                Err(Errno::ECHILD) => return Ok(()),
                Err(Errno::EINVAL) => self.end(),
                Err(error) => return Err(error).context("waiting for the program"),
            }
        }
        Ok(())
    }

    /// Ends the program, as a real-time signal has come or the time is over.
    fn end(&mut self) {
        self.tally.cut_short = true;
        for pid in self.tasks.keys() {
            // It may have ended by itself.
            let _ = signal::kill(*pid, Signal::SIGKILL);
        }
    }

    fn stopped(&mut self, status: WaitStatus) -> anyhow::Result<()> {
        match status {
            WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) => {
                self.tasks.remove(&pid);
                self.alone(pid);
            }
            WaitStatus::PtraceSyscall(pid) => {
                match self.system_call(pid) {
                    // Killed while it was stopped.
                    Ok(()) | Err(Errno::ESRCH) => {}
                    Err(error) => return Err(error).context("looking at a system call"),
                }
                resume(pid, None);
            }
            WaitStatus::PtraceEvent(pid, _, event) => {
                self.event(pid, event);
                resume(pid, None);
            }
            WaitStatus::Stopped(pid, signal) => {
                let fresh = Task { fresh: true, ..Task::default() };
                let task = self.tasks.entry(pid).or_insert(fresh);
                let own = !(std::mem::take(&mut task.fresh) && signal == Signal::SIGSTOP);
                resume(pid, own.then_some(signal));
            }
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, pid: Pid, event: i32) {
        if event == libc::PTRACE_EVENT_EXEC {
            // A thread that execs takes over the number of its process.
            let old = ptrace::getevent(pid).map_or(pid, |old| Pid::from_raw(old as i32));
            if let Some(task) = self.tasks.remove(&old) {
                self.tasks.insert(pid, task);
            }
            let task = self.tasks.entry(pid).or_default();
            task.scratch = 0..0;
            self.alone(pid);
            self.alone(old);
            return;
        }
        let Ok(child) = ptrace::getevent(pid) else { return };
        let child = Pid::from_raw(child as i32);
        let call = self.tasks.get(&pid).and_then(|task| task.pending.as_ref()).map(|it| it.call);
        // Its first stop may already have come.
        self.tasks.entry(child).or_insert(Task { fresh: true, ..Task::default() });
        match call.map(|call| company(&call, &Memory(&Process { pid }))) {
            Some(Company::Threads) => self.threaded.extend([pid, child]),
            Some(Company::Process) => self.shared.extend([pid, child]),
            Some(Company::Nobody) | None => {}
        }
    }

    /// It has memory of its own, or none any more.
    fn alone(&mut self, pid: Pid) {
        self.threaded.remove(&pid);
        self.shared.remove(&pid);
    }

    fn system_call(&mut self, pid: Pid) -> Result<(), Errno> {
        let process = Process { pid };
        let registers = process.registers()?;
        let task = self.tasks.entry(pid).or_default();
        match task.pending.take() {
            None if std::mem::take(&mut task.inside) => {}
            None => self.entered(&process, &registers),
            Some(pending) => self.left(&process, &registers, pending),
        }
        Ok(())
    }

    fn entered(&mut self, process: &Process, registers: &Registers) {
        let mut call = Call {
            number: registers.orig_rax,
            arguments: [
                registers.rdi,
                registers.rsi,
                registers.rdx,
                registers.r10,
                registers.r8,
                registers.r9,
            ],
        };
        let task = self.tasks.entry(process.pid).or_default();
        if call.number == n::restart_syscall
            && let Some(last) = task.last
        {
            call = last;
        }
        task.last = Some(call);
        self.tally.calls += 1;
        let row = self.table.row(&call);
        let snapshot = self.snapshot(process, row.as_deref());
        let before = self.table.before(&call, &Memory(process));
        let task = self.tasks.entry(process.pid).or_default();
        task.pending = Some(Pending { call, before, row, snapshot });
    }

    /// A copy of memory, if this call is to be compared.
    fn snapshot(&mut self, process: &Process, row: Option<&str>) -> Option<Snapshot> {
        let pid = process.pid;
        if self.shared.contains(&pid) || self.threaded.contains(&pid) && is_threaded(pid) {
            self.tally.threaded += 1;
            return None;
        }
        self.credit = (self.credit + ALLOWANCE).min(MOST);
        let is_rare = row.is_some_and(|row| self.tally.seen(row) < RARE);
        let task = self.tasks.entry(process.pid).or_default();
        let is_due = |size: u64| size <= MOST && (is_rare || size <= self.credit);
        // What memory there was last time tells whether it is worth looking how much there is.
        let planned = if is_due(task.size) { Snapshot::plan(process).ok() } else { None };
        task.size = planned.as_ref().map_or(task.size, Snapshot::size);
        let Some(mut snapshot) = planned.filter(|plan| is_due(plan.size())) else {
            self.tally.sampled_out += 1;
            return None;
        };
        self.credit = self.credit.saturating_sub(snapshot.size());
        snapshot.copy(process);
        Some(snapshot)
    }

    fn left(&mut self, process: &Process, registers: &Registers, pending: Pending<T::Before>) {
        let Pending { call, before, row, snapshot } = pending;
        let mut answer = registers.rax.cast_signed();
        let task = self.tasks.entry(process.pid).or_default();
        if call.number == n::rseq && answer == 0 {
            task.scratch = call.arguments[0]..call.arguments[0].saturating_add(call.arguments[1]);
        }
        let scratch = task.scratch.clone();
        if RESTARTS.contains(&answer) {
            answer = -i64::from(libc::EINTR);
        }
        let failed = (-4095..0).contains(&answer);
        let claims = self.table.written(&call, answer, &before, &Memory(process));
        let Some(claims) = claims else {
            let name = row.unwrap_or_else(|| name(&call));
            *self.tally.unknown.entry(name).or_default() += 1;
            return;
        };
        let Some(snapshot) = snapshot else { return };
        if !failed && replaces_memory(&call, &Memory(process)) {
            return;
        }
        let Ok(mut later) = Snapshot::plan(process) else { return };
        later.copy(process);
        // Killed meanwhile, it may have gone on to its end: the kernel clears the thread's number.
        if process.registers().is_err() {
            return;
        }
        self.tally.compared += 1;
        let mut allowed = claims.clone();
        allowed.push((scratch.start, scratch.end - scratch.start));
        allowed.extend(remapped(&call, answer));
        let changes = snapshot.changes(&later);
        let missed = uncovered(&changes, allowed);
        if !missed.is_empty() {
            self.tally.fail(format!(
                "{} = {answer} changed {:x?} ({} runs of bytes) in {}; the table lists only {claims:x?}",
                show(&call),
                &missed[..missed.len().min(4)],
                missed.len(),
                later.areas.name(missed[0].start),
            ));
        }
        if !failed {
            self.check_claims(&call, answer, &claims, &later);
        }
        let Some(row) = row else { return };
        let tally = self.tally.rows.entry(row).or_default();
        tally.claimed += claims.iter().map(|(_, length)| length).sum::<u64>();
        tally.changed += changes.iter().map(|change| change.end - change.start).sum::<u64>();
        if failed {
            tally.failed += 1;
            tally.errors.insert(-answer as i32);
        } else {
            tally.succeeded += 1;
        }
    }

    /// What a call that succeeded wrote must be memory that can be written.
    fn check_claims(&mut self, call: &Call, answer: i64, claims: &[(u64, u64)], now: &Snapshot) {
        // It may have read from there instead.
        if call.number == n::vmsplice {
            return;
        }
        for (address, length) in claims {
            if !now.areas.hold(*address..address.saturating_add(*length)) {
                self.tally.fail(format!(
                    "{} = {answer}: the table lists {length} bytes at {address:#x}, which cannot \
                     be written",
                    show(call),
                ));
            }
        }
    }
}

/// Whether a process has several threads now.
fn is_threaded(pid: Pid) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    tasks.count() != 1
}

/// The parts of changes that no allowed range covers.
fn uncovered(changes: &[Range<u64>], mut allowed: Vec<(u64, u64)>) -> Vec<Range<u64>> {
    allowed.sort_unstable();
    let mut left = Vec::new();
    for change in changes {
        let mut at = change.start;
        for (address, length) in &allowed {
            let end = address.saturating_add(*length);
            if *address > at && at < change.end && *address < change.end {
                left.push(at..*address);
            }
            if end > at && *address < change.end {
                at = end;
            }
        }
        if at < change.end {
            left.push(at..change.end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_range_covers_is_left() {
        let changes = [10..20, 30..40];
        let left = |allowed: &[(u64, u64)]| uncovered(&changes, allowed.to_vec());
        assert_eq!(left(&[(0, 100)]), []);
        assert_eq!(left(&[]), changes);
        assert_eq!(left(&[(12, 3), (30, 10)]), [10..12, 15..20]);
        assert_eq!(left(&[(30, 5), (8, 2), (10, 9), (33, 5)]), [19..20, 38..40]);
    }
}
