//! Rules over a run that is **screened**: accesses are tested inline while the program runs and is recorded.
//! Then the beginning of the recording is followed in full, which is all of a short run. Of a longer one
//! the rest is looked at only if a test found something, or the program crashed, or a rule about allocations
//! found something: what led there, or all of it for whoever has the patience.

use super::beginning;
use super::choose::Chosen;
use super::coverage::{Coverage, Followed};
use super::findings::RuleFindings;
use super::invalid_calls::without_calls;
use super::recorded::{check, heap_functions, number_of_program};
use super::unwritten;
use super::watch::Watch;
use super::windows::{self, WindowLimits};
use crate::ending::words;
use crate::error::of_recording;
use crate::hijack;
use crate::notices::Notices;
use analyze::rules::model::Rule;
use analyze::rules::needs::Needs;
use analyze::rules::ordinary;
use analyze::rules::stream::Suspicion;
use anyhow::Context;
use base::{CrashReport, Finding};
use engine::config::Schedule;
use engine::host::{Job, Outcome, Record as How};
use events::plan::{Heap, Screen};
use recording::ProcessStart;
use replay::Session;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Processor time from which on following a run takes so long that it is said before.
const LONG: Duration = Duration::from_millis(300);

/// Processor time of a run of which all stores are followed to see what led control astray.
const SHORT: Duration = Duration::from_secs(1);

/// How far suspicions are followed.
#[derive(Clone, Copy)]
pub struct Patience {
    /// Ticks from the beginning of the run that are followed in full.
    pub beginning: u64,
    /// Processor time of a suspicious run that is followed in full.
    pub whole: Duration,
    /// How much is followed of another.
    pub limits: WindowLimits,
}

impl Default for Patience {
    fn default() -> Self {
        Self { beginning: beginning::TICKS, whole: Duration::ZERO, limits: WindowLimits::default() }
    }
}

/// Runs a job, recorded and screened, and checks what is suspicious.
pub fn screened(
    job: Job,
    chosen: &Chosen,
    patience: Patience,
    notices: &Notices,
) -> anyhow::Result<(Outcome, RuleFindings)> {
    let mut run = Screened::run(job, chosen, notices)?;
    let astray = run.astray()?;
    if patience.limits.moments > 0 {
        run.look_for_unwritten(chosen, patience.whole)?;
        return run.follow_windows(chosen, patience.limits);
    }
    let failure = words::failure(&run.session, &run.outcome)?;
    let begun = run.follow_beginnings(chosen, patience.beginning)?;
    let mut coverage = Coverage::of_screened(&chosen.rules, run.followed.clone());
    let all = coverage.whole;
    if let Some(why) = &run.stopped {
        coverage.cut(why);
    }
    let (outcome, mut found) = match all {
        true => (run.outcome, begun),
        false => {
            run.look_for_unwritten(chosen, patience.whole)?;
            run.forget_followed();
            let (outcome, rest) = run.check_rest(chosen, patience)?;
            let mut found = begun;
            found.supplement(rest);
            (outcome, found)
        }
    };
    for (process, finding) in astray {
        found.add_first(process, finding);
    }
    if chosen.first_only {
        found.keep_first();
    }
    found.coverage = Some(coverage);
    found.failure = failure;
    Ok((outcome, found))
}

/// A run that was screened.
struct Screened {
    outcome: Outcome,
    found: RuleFindings,
    session: Session,
    /// Why the recording ends before the run does, if it does.
    stopped: Option<String>,
    /// Processor time that it took.
    spent: Duration,
    /// What was followed of its processes from their beginning.
    followed: Vec<Followed>,
    notices: Notices,
    /// Where the recording is.
    _folder: TempDir,
}

impl Screened {
    fn run(job: Job, chosen: &Chosen, notices: &Notices) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder for the recording")?;
        let path = folder.path().join("run.whydunit");
        let before = children_time();
        let (outcome, found, stopped) = record(job, chosen, &path, notices)?;
        let spent = children_time().saturating_sub(before);
        let session = Session::open(&path).context("the recording cannot be checked")?;
        let notices = notices.clone();
        let followed = Vec::new();
        Ok(Self { outcome, found, stopped, session, spent, followed, notices, _folder: folder })
    }

    /// What led the control of a process astray that crashed, or in which a return is suspicious.
    fn astray(&self) -> anyhow::Result<Vec<(i32, Finding)>> {
        let mut all = Vec::new();
        if self.spent >= SHORT {
            return Ok(all);
        }
        for start in self.processes() {
            let crash = self.crash(&start);
            if crash.is_none() && !self.found.returned.contains(&start.pid) {
                continue;
            }
            let findings = hijack::findings(&self.session, start.process, crash)?;
            all.extend(findings.into_iter().map(|finding| (start.pid, finding)));
        }
        Ok(all)
    }

    /// Follows at most so many ticks of all processes together, each from its beginning.
    fn follow_beginnings(&mut self, chosen: &Chosen, ticks: u64) -> anyhow::Result<RuleFindings> {
        let (mut found, mut left) = (RuleFindings::default(), ticks);
        for start in self.processes() {
            if left == 0 {
                self.followed.push(Followed::nothing(&start));
                continue;
            }
            let how = (chosen, left);
            let begun =
                beginning::follow(&self.session, &start, self.crash(&start), how, &self.notices)?;
            left = left.saturating_sub(begun.followed.ticks);
            found.extend(begun.found);
            self.followed.push(begun.followed);
        }
        Ok(found)
    }

    /// What was suspected of what was followed since is decided.
    fn forget_followed(&mut self) {
        let recording = self.session.recording();
        let number = |one: &Followed| {
            let start = recording.processes().iter().find(|start| start.process == one.process);
            start.map(|start| number_of_program(recording, start))
        };
        for one in &self.followed {
            let (program, end) = (number(one), if one.whole { u64::MAX } else { one.until });
            self.found.suspicions.retain(|report| {
                let same = report.process == one.pid && Some(report.program) == program;
                !same || report.suspicion.time >= end
            });
        }
        let suspected: Vec<i32> =
            self.found.suspicions.iter().map(|report| report.process).collect();
        self.found.suspicious.retain(|process| suspected.contains(process));
    }

    /// Whether all of a process was followed.
    fn is_followed(&self, process: u32) -> bool {
        self.followed.iter().any(|one| one.process == process && one.whole)
    }

    /// Looks at what is suspicious behind what was followed.
    fn check_rest(
        self,
        chosen: &Chosen,
        patience: Patience,
    ) -> anyhow::Result<(Outcome, RuleFindings)> {
        let crashed = self
            .processes()
            .iter()
            .any(|start| !self.is_followed(start.process) && self.crash(start).is_some());
        if self.found.suspicious.is_empty() && !crashed {
            return Ok((self.outcome, self.found));
        }
        let what = match self.found.suspicions.first() {
            None => "the program crashed",
            Some(report) => &format!("something is suspicious ({})", report.words),
        };
        if self.spent >= patience.whole {
            self.notices.tell(&format!("{what}: following what led there"));
            return self.follow_windows(chosen, patience.limits);
        }
        if self.spent >= LONG {
            self.notices.tell(&format!(
                "{what}: following the run in full, which takes some hundred times as long; to do without: \
                 `whydunit run --patience 0`"
            ));
        }
        self.follow_all(chosen)
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
        if !chosen.rules.iter().any(unwritten::concerns) {
            return Ok(());
        }
        for start in self.processes() {
            let suspected = self.spent < whole && self.found.suspicious.contains(&start.pid);
            if suspected || self.is_followed(start.process) {
                continue;
            }
            let suspicions = unwritten::suspicions(&self.session, &start, chosen)?;
            if !suspicions.is_empty() {
                self.found.suspicious.insert(start.pid);
                self.found.suspicions.extend(suspicions);
            }
        }
        Ok(())
    }

    /// Follows suspicious processes from their beginning to their end.
    fn follow_all(self, chosen: &Chosen) -> anyhow::Result<(Outcome, RuleFindings)> {
        let mut found = RuleFindings::default();
        // Screens tell of every process. The way to a forked child leads through its parent.
        let is_suspicious = |start: &ProcessStart| {
            let crashed = self.outcome.crashes.iter().any(|crash| crash.process == start.pid);
            let suspicious = crashed || self.found.suspicious.contains(&start.pid);
            suspicious && !self.is_followed(start.process)
        };
        for start in self.processes().into_iter().filter(is_suspicious) {
            found.extend(check(&self.session, start.process, chosen, &self.notices)?);
        }
        Ok((self.outcome, found))
    }

    /// Follows what led to each suspicion and to a crash.
    fn follow_windows(
        self,
        chosen: &Chosen,
        limits: WindowLimits,
    ) -> anyhow::Result<(Outcome, RuleFindings)> {
        let (mut found, mut open) = (RuleFindings::default(), 0);
        for start in self.processes() {
            let (suspicions, crash) = (self.suspicions(&start), self.crash(&start));
            let crash = crash.filter(|_| !self.is_followed(start.process));
            if suspicions.is_empty() && crash.is_none() && limits.moments == 0 {
                continue;
            }
            let how = (chosen, limits);
            let decided = windows::decide(&self.session, &start, &suspicions, crash, how)?;
            found.extend(decided.found);
            open += decided.open;
        }
        if open > 0 {
            self.notices.tell(&format!(
                "{open} of {} suspicions are not decided: what led there is longer than {} ticks; to \
                 follow more of it: `--window {}`, all of it: `--screen`",
                self.found.suspicions.len(),
                limits.longest,
                limits.longest.saturating_mul(16)
            ));
        }
        found.supplement(self.found);
        found.unfollowed = open > 0;
        Ok((self.outcome, found))
    }

    /// What was suspected of a program.
    fn suspicions(&self, start: &ProcessStart) -> Vec<Suspicion> {
        let program = (start.pid, number_of_program(self.session.recording(), start));
        let own = self
            .found
            .suspicions
            .iter()
            .filter(|report| (report.process, report.program) == program);
        own.map(|report| report.suspicion).collect()
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
) -> anyhow::Result<(Outcome, RuleFindings, Option<String>)> {
    let light: Vec<_> = chosen.rules.iter().filter(|rule| is_light(rule)).cloned().collect();
    let watch = Watch::new(&Chosen { rules: light, first_only: false, ..chosen.clone() });
    let mut job = job;
    job.resolve = Some(watch.resolver());
    job.plan = watch.plan();
    if chosen.rules.iter().any(|rule| !is_light(rule)) {
        let functions = heap_functions(&chosen.allocators);
        if chosen.rules.iter().filter(|rule| is_light(rule)).all(sees_invalid_calls) {
            job.plan = without_calls(job.plan, &functions);
        } else {
            job.plan.stops.names.extend(functions.iter().map(|function| function.name.clone()));
        }
        job.plan.stops.contracts = true;
        job.plan.screens.push(Screen::Heap(Heap { functions, provenance: true }));
    }
    job.record = Some(How { schedule: Schedule::Fair, cut: false, from: None, to: None });
    let recorded = replay::record_observed(&job, path, true, &mut |pid| watch.consumer(pid));
    let recorded = recorded.map_err(|error| of_recording(path, error))?;
    if let Some(why) = &recorded.summary.stopped {
        notices.tell(&format!("what came after this is not checked: {why}"));
    }
    let found = watch.finish(&recorded.outcome.crashes);
    Ok((recorded.outcome, found, recorded.summary.stopped))
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
fn sees_invalid_calls(rule: &Rule) -> bool {
    !Needs::of(rule).allocations || ordinary::fails(rule)
}
