//! Rules over a recording, and over a run that was **screened**: accesses are tested inline while
//! the program runs and is recorded, and only if a test finds something, or the program crashes, or
//! a rule about allocations finds something, the recording is checked in full.

use super::choose::Chosen;
use super::unwritten;
use super::watch::{Found, Watch};
use crate::commands::run::fault_or_input;
use crate::render;
use analyze::rules::machine::allocator::{Allocators, Role};
use analyze::rules::model::Rule;
use analyze::rules::needs::Needs;
use analyze::rules::ordinary;
use anyhow::{Context, bail};
use engine::config::Schedule;
use engine::host::{Job, Outcome, Record as How};
use engine::report::ModuleMap;
use events::plan::{BETWEEN, FREED, Filter, HeapFunction, HeapRole, TAIL};
use recording::Origin;
use recording::log::{self, Entry};
use replay::{RecordError, Session, Shown};
use std::time::Duration;

/// Processor time of a run that is followed in full though nobody has asked for it.
pub const SHORT: Duration = Duration::from_secs(5);

/// Processor time from which on following a run takes so long that it is said before.
const LONG: Duration = Duration::from_millis(300);

/// Checks one process of a recording.
pub fn check(session: &Session, process: u32, chosen: &Chosen) -> anyhow::Result<Found> {
    let watch = Watch::new(chosen);
    let (plan, consumer) = watch.replayed(process as i32, &mapped(session, process)?);
    let mut consumer = Some(consumer);
    let mut make = |_| consumer.take().unwrap_or_else(|| Box::new(events::Discard::default()));
    let (replayed, mut crashes) = session
        .replay_and_report(process, plan, Shown::Nothing, &mut make)
        .map_err(fault_or_input)?;
    if let Some(divergence) = &replayed.divergence {
        render::note(&format!("the replay went another way: {}", divergence.what));
    }
    // The runner that replays has another number.
    crashes.iter_mut().for_each(|crash| crash.process = process as i32);
    Ok(watch.finish(&crashes))
}

/// Runs a job, recorded and screened, and checks it if anything is suspicious and it took less processor time
/// than there is `patience`.
pub fn screened(job: Job, chosen: &Chosen, patience: Duration) -> anyhow::Result<(Outcome, Found)> {
    let folder = tempfile::tempdir().context("cannot make a folder for the recording")?;
    let path = folder.path().join("run.whydunit");
    let light: Vec<_> = chosen.rules.iter().filter(|rule| is_light(rule)).cloned().collect();
    let watch = Watch::new(&Chosen { rules: light, first_only: false, ..chosen.clone() });
    let mut job = job;
    job.resolve = Some(watch.resolver());
    job.plan = watch.plan();
    if chosen.rules.iter().any(|rule| !is_light(rule)) {
        let bits = FREED | BETWEEN | TAIL;
        job.plan.filter = Some(Filter::Shadow { reads: bits, writes: bits, paint: Vec::new() });
        job.plan.heap = heap_functions(&chosen.allocators);
        job.plan.names.extend(job.plan.heap.iter().map(|function| function.name.clone()));
        job.plan.quiet = chosen.rules.iter().filter(|rule| is_light(rule)).all(hears_of_unusual);
    }
    job.record = Some(How { schedule: Schedule::Fair, cut: false, from: None, to: None });
    let begun = children_time();
    let recorded = replay::record_observed(&job, &path, true, &mut |pid| watch.consumer(pid));
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(RecordError::Run(error)) => return Err(fault_or_input(error)),
        Err(RecordError::Write(error)) => bail!("cannot record: {error}"),
    };
    if let Some(why) = &recorded.summary.stopped {
        render::note(&format!("what came after this is not checked: {why}"));
    }
    let outcome = recorded.outcome;
    let spent = children_time().saturating_sub(begun);
    let mut screened = watch.finish(&outcome.crashes);
    let session = Session::open(&path).context("the recording cannot be checked")?;
    let begun = session.recording().processes().iter();
    let begun: Vec<_> =
        begun.filter(|start| session.recording().has_begun(start.process)).collect();
    if chosen.rules.iter().any(unwritten::concerns) {
        for start in &begun {
            if screened.suspicious.contains(&start.pid) {
                continue;
            }
            let doubts = unwritten::doubts(&session, start.process, chosen)?;
            if !doubts.is_empty() {
                screened.suspicious.insert(start.pid);
                screened.doubts.extend(doubts);
            }
        }
    }
    if screened.suspicious.is_empty() && outcome.crashes.is_empty() {
        return Ok((outcome, screened));
    }
    let what = match screened.doubts.first() {
        None => "the program crashed",
        Some(doubt) => &format!("something is suspicious ({doubt})"),
    };
    if spent >= patience {
        render::note(&format!(
            "{what}, and was not followed, as the run was long and that takes a hundred times as long; \
             to do so all the same: `whydunit run --screen`"
        ));
        screened.unfollowed = !screened.suspicious.is_empty();
        return Ok((outcome, screened));
    }
    if spent >= LONG {
        render::note(&format!(
            "{what}: following the run in full, which takes some hundred times as long; to do without: \
             `whydunit run --patience 0`"
        ));
    }
    let mut found = Found::default();
    // Screens tell of every process. The way to a forked child leads through its parent.
    let is_suspicious = |pid: i32| {
        let crashed = outcome.crashes.iter().any(|crash| crash.process == pid);
        crashed || screened.suspicious.contains(&pid)
    };
    for start in begun.into_iter().filter(|start| is_suspicious(start.pid)) {
        found.extend(check(&session, start.process, chosen)?);
    }
    Ok((outcome, found))
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

/// The functions of allocators as a plan has them.
pub fn heap_functions(allocators: &Allocators) -> Vec<HeapFunction> {
    let function = |name: String| {
        let allocator = allocators.named(&name)?;
        let role = match allocator.role {
            Role::Allocate { size, count, .. } => HeapRole::Allocate(size, count),
            Role::AllocateFixed { bytes } => HeapRole::AllocateFixed(bytes),
            Role::Resize { size, count } => HeapRole::Resize(size, count),
            Role::AllocateTo { size } => HeapRole::AllocateTo(size),
            Role::Free => HeapRole::Free,
            Role::Measure => HeapRole::Measure,
        };
        // Families are few; those of a file with more than fit are told apart less well.
        let family = allocator.family as u8;
        let zeroed = matches!(allocator.role, Role::Allocate { zeroed: true, .. });
        Some(HeapFunction { name, role, family, zeroed, at: Vec::new() })
    };
    allocators.names().into_iter().filter_map(function).collect()
}

/// Every piece of a file that the process has mapped, or was forked with. How long one is, its log
/// does not say.
pub fn mapped(session: &Session, process: u32) -> anyhow::Result<Vec<ModuleMap>> {
    let known = session.recording().processes();
    let start = known.iter().find(|start| start.process == process);
    let forked = start.filter(|start| start.origin != Origin::Exec);
    // A parent is always older, so this has an end.
    let parent = forked.and_then(|start| start.parent).filter(|parent| *parent < process);
    let mut maps = parent.map_or(Ok(Vec::new()), |parent| mapped(session, parent))?;
    let mut answer = 0;
    for (entry, _) in log::entries(session.recording().log(process)?) {
        match entry {
            Entry::Image(image) => {
                for mapping in image.mappings {
                    let Some(path) = mapping.path else { continue };
                    let (start, end, offset) = (mapping.start, mapping.end, mapping.offset);
                    maps.push(ModuleMap { start, end, offset, path });
                }
            }
            Entry::Call(call) => answer = call.answer,
            Entry::Mapped { path, view } => {
                let (start, offset) = (answer as u64, view.offset);
                let end = start.saturating_add(view.size.saturating_sub(offset));
                maps.push(ModuleMap { start, end, offset, path });
            }
            _ => {}
        }
    }
    Ok(maps)
}
