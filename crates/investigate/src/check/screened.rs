//! Rules over a run that is **screened**: accesses are tested inline while the program runs and is recorded,
//! and only if a test finds something, or the program crashes, or a rule about allocations finds
//! something, the recording is checked: in full, or if the run was long, what led there.

use super::choose::Chosen;
use super::quiet::without_calls;
use super::recorded::{check, heap_functions, number_of_program};
use super::unwritten;
use super::watch::{Found, Watch};
use super::windows::{self, Look};
use crate::error::of_recording;
use crate::notices::Notices;
use analyze::rules::model::Rule;
use analyze::rules::needs::Needs;
use analyze::rules::ordinary;
use analyze::rules::stream::Suspicion;
use anyhow::Context;
use base::CrashReport;
use engine::config::Schedule;
use engine::host::{Job, Outcome, Record as How};
use events::plan::{Heap, Screen};
use recording::ProcessStart;
use replay::Session;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Processor time of a run that is followed in full though nobody has asked for it.
const SHORT: Duration = Duration::from_secs(1);

/// Processor time from which on following a run takes so long that it is said before.
const LONG: Duration = Duration::from_millis(300);

/// How far suspicions are followed.
#[derive(Clone, Copy)]
pub struct Patience {
    /// Processor time of a run that is followed in full.
    pub whole: Duration,
    /// How much is followed of another.
    pub look: Look,
}

impl Default for Patience {
    fn default() -> Self {
        Self { whole: SHORT, look: Look::default() }
    }
}

/// Runs a job, recorded and screened, and checks what is suspicious.
pub fn screened(
    job: Job,
    chosen: &Chosen,
    patience: Patience,
    notices: &Notices,
) -> anyhow::Result<(Outcome, Found)> {
    let mut run = Screened::run(job, chosen, notices)?;
    if chosen.rules.iter().any(unwritten::concerns) {
        run.look_for_unwritten(chosen, patience.whole)?;
    }
    if patience.look.moments > 0 {
        return run.follow_windows(chosen, patience.look);
    }
    if run.found.suspicious.is_empty() && run.outcome.crashes.is_empty() {
        return Ok((run.outcome, run.found));
    }
    let what = match run.found.doubts.first() {
        None => "the program crashed",
        Some(doubt) => &format!("something is suspicious ({})", doubt.words),
    };
    if run.spent >= patience.whole {
        notices.tell(&format!(
            "{what}: following what led there; all of so long a run takes a hundred times as long: \
             `whydunit run --screen`"
        ));
        return run.follow_windows(chosen, patience.look);
    }
    if run.spent >= LONG {
        notices.tell(&format!(
            "{what}: following the run in full, which takes some hundred times as long; to do without: \
             `whydunit run --patience 0`"
        ));
    }
    run.follow_all(chosen)
}

/// A run that was screened.
struct Screened {
    outcome: Outcome,
    found: Found,
    session: Session,
    /// Processor time that it took.
    spent: Duration,
    notices: Notices,
    /// Where the recording is.
    _folder: TempDir,
}

impl Screened {
    fn run(job: Job, chosen: &Chosen, notices: &Notices) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder for the recording")?;
        let path = folder.path().join("run.whydunit");
        let before = children_time();
        let (outcome, found) = record(job, chosen, &path, notices)?;
        let spent = children_time().saturating_sub(before);
        let session = Session::open(&path).context("the recording cannot be checked")?;
        let notices = notices.clone();
        Ok(Self { outcome, found, session, spent, notices, _folder: folder })
    }

    /// The processes that have done anything.
    fn processes(&self) -> Vec<ProcessStart> {
        let recording = self.session.recording();
        let begun = |start: &&ProcessStart| recording.has_begun(start.process);
        recording.processes().iter().filter(begun).cloned().collect()
    }

    /// Suspects processes that depend on what nobody wrote. Those that are followed as a whole anyway need
    /// no reason for it.
    fn look_for_unwritten(&mut self, chosen: &Chosen, whole: Duration) -> anyhow::Result<()> {
        for start in self.processes() {
            if self.spent < whole && self.found.suspicious.contains(&start.pid) {
                continue;
            }
            let doubts = unwritten::doubts(&self.session, &start, chosen)?;
            if !doubts.is_empty() {
                self.found.suspicious.insert(start.pid);
                self.found.doubts.extend(doubts);
            }
        }
        Ok(())
    }

    /// Follows suspicious processes from their beginning to their end.
    fn follow_all(self, chosen: &Chosen) -> anyhow::Result<(Outcome, Found)> {
        let mut found = Found::default();
        // Screens tell of every process. The way to a forked child leads through its parent.
        let is_suspicious = |start: &ProcessStart| {
            let crashed = self.outcome.crashes.iter().any(|crash| crash.process == start.pid);
            crashed || self.found.suspicious.contains(&start.pid)
        };
        for start in self.processes().into_iter().filter(is_suspicious) {
            found.extend(check(&self.session, start.process, chosen, &self.notices)?);
        }
        Ok((self.outcome, found))
    }

    /// Follows what led to each suspicion and to a crash.
    fn follow_windows(self, chosen: &Chosen, look: Look) -> anyhow::Result<(Outcome, Found)> {
        let (mut found, mut open) = (Found::default(), 0);
        for start in self.processes() {
            let (suspicions, crash) = (self.suspicions(&start), self.crash(&start));
            if suspicions.is_empty() && crash.is_none() && look.moments == 0 {
                continue;
            }
            let how = (chosen, look);
            let decided = windows::decide(&self.session, &start, &suspicions, crash, how)?;
            found.extend(decided.found);
            open += decided.open;
        }
        if open > 0 {
            self.notices.tell(&format!(
                "{open} of {} suspicions are not decided: what led there is longer than {} ticks; to \
                 follow more of it: `--window {}`, all of it: `--screen`",
                self.found.doubts.len(),
                look.longest,
                look.longest.saturating_mul(16)
            ));
        }
        found.supplement(self.found);
        if chosen.first_only {
            found.keep_first();
        }
        found.unfollowed = open > 0;
        Ok((self.outcome, found))
    }

    /// What was suspected of a program.
    fn suspicions(&self, start: &ProcessStart) -> Vec<Suspicion> {
        let program = (start.pid, number_of_program(self.session.recording(), start));
        let own =
            self.found.doubts.iter().filter(|doubt| (doubt.process, doubt.program) == program);
        own.map(|doubt| doubt.suspicion).collect()
    }

    /// How a program crashed: the last one of its process.
    fn crash(&self, start: &ProcessStart) -> Option<&CrashReport> {
        let all = self.session.recording().processes().iter();
        let last = all.filter(|other| other.pid == start.pid).map(|other| other.process).max();
        let crash = self.outcome.crashes.iter().find(|crash| crash.process == start.pid);
        crash.filter(|_| last == Some(start.process))
    }
}

/// Runs a job, recorded and screened.
fn record(
    job: Job,
    chosen: &Chosen,
    path: &Path,
    notices: &Notices,
) -> anyhow::Result<(Outcome, Found)> {
    let light: Vec<_> = chosen.rules.iter().filter(|rule| is_light(rule)).cloned().collect();
    let watch = Watch::new(&Chosen { rules: light, first_only: false, ..chosen.clone() });
    let mut job = job;
    job.resolve = Some(watch.resolver());
    job.plan = watch.plan();
    if chosen.rules.iter().any(|rule| !is_light(rule)) {
        let functions = heap_functions(&chosen.allocators);
        if chosen.rules.iter().filter(|rule| is_light(rule)).all(hears_of_unusual) {
            job.plan = without_calls(job.plan, &functions);
        } else {
            job.plan.stops.names.extend(functions.iter().map(|function| function.name.clone()));
        }
        job.plan.screens.push(Screen::Heap(Heap { functions, provenance: true }));
    }
    job.record = Some(How { schedule: Schedule::Fair, cut: false, from: None, to: None });
    let recorded = replay::record_observed(&job, path, true, &mut |pid| watch.consumer(pid));
    let recorded = recorded.map_err(|error| of_recording(path, error))?;
    if let Some(why) = &recorded.summary.stopped {
        notices.tell(&format!("what came after this is not checked: {why}"));
    }
    let found = watch.finish(&recorded.outcome.crashes);
    Ok((recorded.outcome, found))
}

/// Processor time of all children that have ended: what a run waited for or slept does not count.
fn children_time() -> Duration {
    /// `cutime` and `cstime` of proc(5), counted behind the name of the program, in hundredths.
    const FIELDS: std::ops::Range<usize> = 13..15;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let times =
        fields.skip(FIELDS.start).take(FIELDS.len()).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(times.sum::<u64>().saturating_mul(10))
}

/// Whether this process may not reserve the room that a screen's tables take (`ulimit -v`).
pub fn is_cramped() -> bool {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"));
    limit.is_some_and(|words| words.split_whitespace().next() != Some("unlimited"))
}

/// Whether a rule needs only allocations, calls of functions and the like.
pub fn is_light(rule: &Rule) -> bool {
    let needs = Needs::of(rule);
    !(needs.accesses || needs.pointers || needs.descriptors || needs.contents)
}

/// Whether a rule needs no allocations but unusual ones: those are suspicions anyway.
fn hears_of_unusual(rule: &Rule) -> bool {
    !Needs::of(rule).allocations || ordinary::fails(rule)
}
