//! Decides what is suspicious in a long run by following only what led there: a **window** of the recording
//! that ends right behind the suspicion. If that does not tell what a pointer was made from, a longer one
//! does (`analyze::rules::machine::window`).

use super::choose::Chosen;
use super::findings::{self, RuleFindings};
use super::modules::Modules;
use super::recorded::mapped;
use super::watch::{Located, Watch, fault};
use crate::error::fault_or_input;
use crate::program::program_of;
use crate::scene::{At, registers_of};
use analyze::rules::hit::{Hit, Subject};
use analyze::rules::machine::{Start, Words};
use analyze::rules::needs::is_local;
use analyze::rules::stream::{Stream, Suspicion};
use anyhow::Context;
use base::{CrashReport, Tick};
use events::plan::{Execution, Stops};
use events::suspicion::Suspicion as Met;
use events::{Consumer, Plan};
use recording::ProcessStart;
use replay::{Instant, Session, StoppedProcess, Timeline};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use symbols::FoundBy;

/// Ticks that the longest window has, if nobody says otherwise: some 50 million instructions.
const LONGEST: u64 = 1 << 23;

/// What the others have of that.
const PARTS: [u64; 3] = [64, 8, 1];

/// Ticks behind a suspicion that are followed too: a wrong address is used somewhat later than it is made, and a
/// collector is told by how it goes on.
const BEHIND: u64 = 256;

/// Frames that are looked for where a window begins.
const FRAMES: usize = 64;

/// How far to limits.
#[derive(Clone, Copy)]
pub struct WindowLimits {
    /// Ticks of the longest window.
    pub longest: u64,
    /// Moments that are suspected without a reason, to see that nothing is found.
    pub moments: u64,
    /// Whether all windows of a process together are bounded: by [`ENOUGH`], and a part of the process.
    pub bounded: bool,
}

impl Default for WindowLimits {
    fn default() -> Self {
        Self { longest: LONGEST, moments: 0, bounded: true }
    }
}

/// Ticks that are followed of any process to decide its suspicions, and which part of the process besides.
const ENOUGH: u64 = 1 << 21;
const PART: u64 = 8;

/// What became of suspicions.
pub struct Decided {
    /// What rules found.
    pub found: RuleFindings,
    /// How many suspicions no window was long enough for.
    pub open: usize,
}

/// Something that a window leads to.
#[derive(Clone, Copy)]
struct Suspect<'a> {
    time: u64,
    suspicion: Option<Suspicion>,
    crash: Option<&'a CrashReport>,
}

/// What windows have said of a suspect so far.
#[derive(Default)]
struct Answer {
    /// Whether one has decided it.
    decided: bool,
    /// Whether a longer one says no more.
    complete: bool,
}

/// What a window says of a suspect.
enum Verdict {
    /// A rule found something; whether the chain of a pointer goes back further.
    Found { cut: bool },
    /// Rules find nothing there.
    Nothing,
    /// The window was not long enough.
    Open,
}

/// Decides what is suspicious in one process, and why it crashed.
pub fn decide(
    session: &Session,
    start: &ProcessStart,
    suspicions: &[Suspicion],
    crash: Option<&CrashReport>,
    (chosen, limits): (&Chosen, WindowLimits),
) -> anyhow::Result<Decided> {
    let mut checker = WindowChecker::new(session, start, chosen)?;
    let end = checker.line.end().map_err(fault_or_input)?.time;
    let suspects = suspects(suspicions, crash, limits.moments, end);
    let begins = |suspect: &Suspect<'_>| {
        PARTS.map(|part| suspect.time.saturating_sub((limits.longest / part).max(1)))
    };
    let snapshots = checker.snapshots(suspects.iter().flat_map(begins).collect())?;
    if limits.bounded {
        checker.left = ENOUGH + end / PART;
    }
    let mut hits = Vec::new();
    let mut open: Vec<(&Suspect<'_>, Answer)> =
        suspects.iter().map(|suspect| (suspect, Answer::default())).collect();
    // Short windows before long ones: what most suspicions need is little.
    for length in 0..PARTS.len() {
        for (suspect, answer) in open.iter_mut().filter(|(_, answer)| !answer.complete) {
            let begin = begins(suspect)[length];
            checker.confirm(suspect, begin, &snapshots, (answer, &mut hits))?;
        }
    }
    for (suspect, answer) in open.iter_mut().filter(|(_, answer)| !answer.decided) {
        let begin = begins(suspect)[PARTS.len() - 1];
        answer.decided = checker.guess(suspect, begin, &snapshots, &mut hits)?;
    }
    let undecided = |(suspect, answer): &&(&Suspect<'_>, Answer)| {
        !answer.decided && suspect.suspicion.is_some()
    };
    let open = open.iter().filter(undecided).count();
    let mut decided = Decided { found: RuleFindings::default(), open };
    decided.found.broken = checker.broken;
    checker.scans.iter().for_each(|_| decided.found.set_scan_aside());
    let program = checker.modules.program();
    let located = Located::of(session.recording(), start.process);
    for hit in &hits {
        decided.found.add((start.pid, Some(&located)), hit, &program, &chosen.suppressions);
    }
    Ok(decided)
}

/// What there is to decide in a process that ended at this time.
fn suspects<'a>(
    suspicions: &[Suspicion],
    crash: Option<&'a CrashReport>,
    moments: u64,
    end: u64,
) -> Vec<Suspect<'a>> {
    let nothing = Suspect { time: end, suspicion: None, crash: None };
    let suspected =
        |one: &Suspicion| Suspect { time: one.time.min(end), suspicion: Some(*one), ..nothing };
    let mut suspects: Vec<Suspect<'_>> = suspicions.iter().map(suspected).collect();
    suspects.extend(crash.map(|crash| Suspect { crash: Some(crash), ..nothing }));
    suspects
        .extend((1..=moments).map(|part| Suspect { time: end / (moments + 1) * part, ..nothing }));
    suspects
}

/// A process, and what is needed to follow it.
struct WindowChecker {
    line: Timeline,
    /// Observes everything.
    plan: Plan,
    /// Observes allocations.
    allocations: Plan,
    modules: Modules,
    /// Knows all that is known before the process begins.
    fresh: Stream,
    /// Whether events were broken anywhere.
    broken: bool,
    /// Ticks that may still be followed.
    left: u64,
    /// What collectors did that look through the stack: rules and instructions.
    scans: BTreeSet<(String, u64)>,
    /// Whether that is set aside.
    sets_aside: bool,
}

/// Where a window may begin.
struct Snapshot {
    time: u64,
    standing: StoppedProcess,
    /// Knows all blocks.
    stream: Stream,
}

impl WindowChecker {
    fn new(session: &Session, start: &ProcessStart, chosen: &Chosen) -> anyhow::Result<Self> {
        let rules = chosen.rules.iter().filter(|rule| is_local(rule)).cloned().collect();
        let watch = Watch::new(&Chosen { rules, ..chosen.clone() });
        let (plan, detector, modules) = watch.prepared(&mapped(session, start.process)?);
        let stops = Stops { contracts_at: Vec::new(), ..plan.stops.clone() };
        let allocations = Plan { stops, ..Plan::default() }.with_forks();
        let mut line = session.timeline(start.process).map_err(fault_or_input)?;
        // Windows begin at snapshots of their own.
        line.limit_checkpoints(0);
        let (fresh, left) = (Stream::new(detector), u64::MAX);
        let (broken, scans) = (false, BTreeSet::new());
        let sets_aside = findings::sets_scans_aside(&chosen.suppressions);
        Ok(Self { line, plan, allocations, modules, fresh, broken, left, scans, sets_aside })
    }

    /// Goes through the run and leaves snapshots at these times.
    fn snapshots(&mut self, times: BTreeSet<u64>) -> anyhow::Result<Vec<Snapshot>> {
        let mut here = self.line.begin().map_err(fault_or_input)?;
        let mut stream = self.fresh.branch();
        stream.detector_mut().only_allocations();
        let mut snapshots = Vec::new();
        for time in times {
            if time > here.at.time {
                stream = self.observe(&mut here, Some(time), self.allocations.clone(), stream)?;
            }
            let standing = self.line.copy(&here).map_err(fault_or_input)?;
            snapshots.push(Snapshot { time, standing, stream: stream.branch() });
        }
        Ok(snapshots)
    }

    /// Follows a window that leads to a suspect.
    fn confirm(
        &mut self,
        suspect: &Suspect<'_>,
        begin: u64,
        snapshots: &[Snapshot],
        (answer, hits): (&mut Answer, &mut Vec<Hit>),
    ) -> anyhow::Result<()> {
        let Some(snapshot) = self.affordable(suspect, begin, snapshots) else { return Ok(()) };
        let stream = self.follow(suspect, snapshot, false)?;
        let verdict = verdict(suspect, &stream, begin == 0);
        self.keep_all(hits, &stream);
        answer.decided |= !matches!(verdict, Verdict::Open);
        answer.complete =
            matches!(verdict, Verdict::Found { cut: false } | Verdict::Nothing) || begin == 0;
        Ok(())
    }

    /// Follows the longest window again, and guesses what older pointers were made from. Whether that
    /// decides it.
    fn guess(
        &mut self,
        suspect: &Suspect<'_>,
        begin: u64,
        snapshots: &[Snapshot],
        hits: &mut Vec<Hit>,
    ) -> anyhow::Result<bool> {
        // What was written nobody can guess.
        let helps = suspect.suspicion.is_none_or(|one| !matches!(one.met, Met::Unwritten(_)));
        if begin == 0 || !helps {
            return Ok(false);
        }
        let Some(snapshot) = self.affordable(suspect, begin, snapshots) else { return Ok(false) };
        let stream = self.follow(suspect, snapshot, true)?;
        self.keep_all(hits, &stream);
        Ok(matches!(verdict(suspect, &stream, false), Verdict::Found { .. }))
    }

    /// Keeps what a stream has found, but for what a collector does on purpose.
    fn keep_all(&mut self, hits: &mut Vec<Hit>, stream: &Stream) {
        let detector = stream.detector();
        for hit in detector.hits() {
            match self.sets_aside && detector.is_of_scan(hit) {
                true => self.scans.extend(hit.stack.first().map(|pc| (hit.rule.clone(), *pc))),
                false => keep(hits, hit),
            }
        }
    }

    /// Where a window begins, if there is enough left to follow it. The shortest ones always are.
    fn affordable<'a>(
        &mut self,
        suspect: &Suspect<'_>,
        begin: u64,
        snapshots: &'a [Snapshot],
    ) -> Option<&'a Snapshot> {
        let ticks = suspect.time.saturating_sub(begin);
        if ticks > self.left && ticks > LONGEST / PARTS[0] {
            return None;
        }
        self.left = self.left.saturating_sub(ticks);
        snapshots.iter().find(|snapshot| snapshot.time == begin)
    }

    /// Follows everything from a snapshot to a suspect. `guesses`: what older pointers were made from.
    fn follow(
        &mut self,
        suspect: &Suspect<'_>,
        snapshot: &Snapshot,
        guesses: bool,
    ) -> anyhow::Result<Stream> {
        let mut stream = match snapshot.time {
            0 => self.fresh.branch(),
            _ => {
                let mut stream = snapshot.stream.branch();
                let places = suspect.suspicion.map(|one| one.pc).into_iter().collect();
                let words = match guesses {
                    true => {
                        Some(words(self.line.copy(&snapshot.standing).map_err(fault_or_input)?))
                    }
                    false => None,
                };
                let start = Start { words, ..beginning(&snapshot.standing) };
                stream.detector_mut().begin_window(&start, places);
                stream
            }
        };
        let mut from = self.line.copy(&snapshot.standing).map_err(fault_or_input)?;
        stream.begin_at(Tick(from.at.time));
        let to = suspect.crash.is_none().then_some(suspect.time + BEHIND);
        stream = self.observe(&mut from, to, self.plan.clone(), stream)?;
        if let Some(crash) = suspect.crash {
            fault(&mut stream, crash);
        }
        self.broken |= stream.broken;
        Ok(stream)
    }

    /// Goes on to a time, or to the end, and tells a stream what happens.
    fn observe(
        &mut self,
        from: &mut StoppedProcess,
        to: Option<u64>,
        plan: Plan,
        stream: Stream,
    ) -> anyhow::Result<Stream> {
        let back = Arc::new(Mutex::new(None));
        let allocations_only = plan.observe.execution < Execution::Addresses;
        let carrier = Carrier { allocations_only, ..Carrier::new(stream, &back) };
        let to = to.map(|time| Instant { time, pc: None });
        self.line.observe_on(from, to, plan, Box::new(carrier)).map_err(fault_or_input)?;
        let stream = back.lock().unwrap_or_else(PoisonError::into_inner).take();
        stream.context("the replay has not given back what it was to tell")
    }
}

/// What the thread is doing where a window begins, as far as that is certain.
fn beginning(standing: &StoppedProcess) -> Start {
    let thread = &standing.at.thread;
    let program = program_of(&standing.at.modules);
    let stack = program.unwind_at_most(&registers_of(thread), &At(standing), FRAMES);
    let pairs = stack.frames.iter().zip(stack.frames.iter().skip(1));
    let certain = pairs.take_while(|(_, caller)| caller.found_by == FoundBy::CallFrameInfo);
    let call = |(callee, caller): (&symbols::Frame, &symbols::Frame)| {
        Some((caller.code().0, callee.cfa?.0.wrapping_sub(8)))
    };
    let mut calls: Vec<(u64, u64)> = certain.map_while(call).collect();
    calls.reverse();
    Start { registers: thread.general, calls, words: None }
}

/// What memory holds where a process stands.
fn words(standing: StoppedProcess) -> Words {
    const PAGE: u64 = 4096;
    const WORD: usize = 8;
    let pages = Mutex::new(HashMap::new());
    Arc::new(move |address| {
        let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        let page = pages.entry(address / PAGE).or_insert_with(|| {
            let mut bytes = vec![0; PAGE as usize];
            let read = standing.read(address & !(PAGE - 1), &mut bytes);
            (read == bytes.len()).then_some(bytes)
        });
        let at = (address % PAGE) as usize;
        let word = page.as_ref()?.get(at..at + WORD)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    })
}

/// What a stream that was told of a window says of a suspect. `whole`: the window is all that led there.
fn verdict(suspect: &Suspect<'_>, stream: &Stream, whole: bool) -> Verdict {
    let detector = stream.detector();
    let is_about = |hit: &&Hit| suspect.suspicion.is_none_or(|suspicion| answers(hit, suspicion));
    let mut about = detector.hits().iter().filter(is_about).peekable();
    if about.peek().is_some() {
        let cut = !about.any(|hit| !is_cut(hit));
        return Verdict::Found { cut };
    }
    let accesses = |one: Suspicion| matches!(one.met, Met::OutsideBlocks { .. });
    let known = |one: Suspicion| accesses(one) && !detector.is_unknown(one.pc);
    match whole || suspect.suspicion.is_some_and(known) {
        true => Verdict::Nothing,
        false => Verdict::Open,
    }
}

/// Whether something that was found may be what was suspected.
fn answers(hit: &Hit, suspicion: Suspicion) -> bool {
    match suspicion.met {
        Met::InvalidCall { .. } => {
            matches!(hit.subject, Subject::Release { .. } | Subject::Allocation { .. })
        }
        Met::OutsideBlocks { access, .. } => match hit.subject {
            // Suspected inside of a function that is judged where it is called.
            Subject::Library { address, length, .. } => {
                (address..=address.saturating_add(length)).contains(&access.address)
            }
            _ => hit.stack.first() == Some(&suspicion.pc),
        },
        // Where an address is made it is not used yet, and a comparison decides nothing by itself.
        _ => true,
    }
}

fn is_cut(hit: &Hit) -> bool {
    hit.chains.iter().any(|chain| chain.cut)
}

/// Keeps something that was found once, as it was found with the longest chain. How often it happened a
/// window does not tell.
fn keep(hits: &mut Vec<Hit>, hit: &Hit) {
    let same =
        |known: &&mut Hit| known.rule == hit.rule && known.stack.first() == hit.stack.first();
    match hits.iter_mut().find(same) {
        Some(known) if is_cut(known) && !hit.guessed => *known = Hit { count: 1, ..hit.clone() },
        Some(_) => {}
        None => hits.push(Hit { count: 1, ..hit.clone() }),
    }
}

/// Tells a stream what is observed, and gives it back.
pub(super) struct Carrier {
    stream: Option<Stream>,
    /// Whether only allocations are told.
    allocations_only: bool,
    back: Arc<Mutex<Option<Stream>>>,
}

impl Carrier {
    /// Carries a stream that everything is told.
    pub fn new(stream: Stream, back: &Arc<Mutex<Option<Stream>>>) -> Self {
        Self { stream: Some(stream), allocations_only: false, back: back.clone() }
    }
}

impl Consumer for Carrier {
    fn records(&mut self, bytes: &[u8]) {
        let Some(stream) = &mut self.stream else { return };
        stream.records(bytes);
        if self.allocations_only {
            stream.detector_mut().machine.condense();
        }
    }

    fn end(&mut self) {
        *self.back.lock().unwrap_or_else(PoisonError::into_inner) = self.stream.take();
    }
}
