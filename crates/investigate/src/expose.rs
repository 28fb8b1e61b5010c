//! **Exposing** a rare failure: the program is recorded under one schedule after the other, until a run
//! goes otherwise than the first did. Then recordings with fewer switches are looked for that fail alike.
//!
//! How a single recording is made is not known here ([`Tries`]); what is tried next, what counts as a
//! failure, and what the recording that is kept says, is.

use crate::case::Case;
use crate::notices::Notices;
use crate::races;
use crate::scene::{At, registers_of};
use crate::threads::Threads;
use base::{Address, ModuleKind, Place, ThreadNumber, Tick};
use engine::config::{Schedule, SwitchPoint};
use recording::log::{Entry, entries};
use recording::{End, Recording};
use replay::{Instant, Timeline};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant as Clock};
use symbols::Program;

/// One recording to be made.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Who runs when.
    pub schedule: Schedule,
    /// Whether threads are stopped between any two instructions.
    pub cut: bool,
    /// Where threads may be stopped besides.
    pub switch_points: Vec<SwitchPoint>,
}

impl Attempt {
    fn new(schedule: Schedule) -> Self {
        Self { schedule, cut: false, switch_points: Vec::new() }
    }

    /// How it is told.
    #[must_use]
    pub fn describe(&self) -> String {
        let held = self.switch_points.iter().filter(|point| point.holds).count();
        let schedule = replay::schedule_text(self.schedule);
        match (held, self.cut) {
            (0, false) => schedule,
            (0, true) => format!("{schedule} --cut"),
            _ => format!("{schedule}, directed at {held} suspicious places"),
        }
    }
}

/// What came of an attempt.
#[derive(Clone, Debug)]
pub struct Tried {
    /// How the program ended.
    pub end: End,
    /// Whether it was ended because it took too long.
    pub hung: bool,
    /// What it wrote to standard output and error.
    pub output: Vec<u8>,
    /// What the user's own test says: whether this is what is looked for.
    pub wanted: Option<bool>,
}

/// Makes recordings.
pub trait Tries: Sync {
    /// Records the program to a file.
    fn attempt(&self, attempt: &Attempt, file: &Path) -> anyhow::Result<Tried>;
}

/// How long to look.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most recordings.
    pub runs: u64,
    /// Longest time.
    pub time: Duration,
    /// Recordings made at once.
    pub at_once: usize,
    /// Most recordings to find one with fewer switches.
    pub shorten: u64,
}

/// A failure.
#[derive(Clone, Debug, Serialize)]
pub struct Exposed {
    /// What is wrong with the run, as a sentence without a full stop.
    pub what: String,
    /// The recording it was seen in, by number from 1.
    pub run: u64,
    /// The schedule that showed it.
    pub found_with: String,
    /// The schedule of the recording that is kept.
    pub kept_with: String,
    /// Recordings made to find one with fewer switches.
    pub shortened: u64,
    /// Where threads were stopped for others in the recording that is kept, in order.
    pub switches: Vec<Switch>,
}

/// A thread was stopped for another.
#[derive(Clone, Debug, Serialize)]
pub struct Switch {
    /// Who was stopped.
    pub thread: ThreadNumber,
    /// Before what.
    pub place: Place,
    /// When.
    pub tick: Tick,
    /// Who ran instead.
    pub next: ThreadNumber,
}

/// What came of the search.
pub enum Answer {
    /// A run failed.
    Exposed(Box<Exposed>),
    /// None of so many did.
    Nothing(u64),
}

/// What the first runs were like.
struct Usual {
    end: End,
    /// If it is the same whenever nothing else is.
    output: Option<Vec<u8>>,
    tests: bool,
}

impl Usual {
    /// What is wrong with a run.
    fn failure(&self, tried: &Tried) -> Option<String> {
        if self.tests {
            return (tried.wanted == Some(true)).then(|| "the test was passed".into());
        }
        if tried.hung {
            return Some("it did not end in time".into());
        }
        if tried.end != self.end {
            return Some(describe_end(tried.end));
        }
        let output = self.output.as_ref()?;
        (tried.output != *output).then(|| "it wrote something else".into())
    }
}

fn describe_end(end: End) -> String {
    match end {
        End::Killed(signal) => format!("signal {signal} ended it"),
        End::Exited(code) => format!("it ended with exit code {code}"),
        _ => "it did not end by itself".into(),
    }
}

/// Looks for a failure; the recording of it goes to `file`.
pub fn search(
    tries: &dyn Tries,
    limits: Limits,
    file: &Path,
    notices: &Notices,
) -> anyhow::Result<Answer> {
    let folder = tempfile::tempdir()?;
    let begun = Clock::now();
    let first = folder.path().join("first");
    let tried = tries.attempt(&Attempt::new(Schedule::Fair), &first)?;
    let killed = matches!(tried.end, End::Killed(_)) || tried.hung;
    if killed || tried.wanted == Some(true) {
        let what =
            if tried.hung { "it did not end in time".into() } else { describe_end(tried.end) };
        keep(&first, file)?;
        let schedule = Attempt::new(Schedule::Fair).describe();
        let switches = switches(file, notices)?;
        let (run, found_with, kept_with, shortened) = (1, schedule.clone(), schedule, 0);
        let exposed = Exposed { what, run, found_with, kept_with, shortened, switches };
        return Ok(Answer::Exposed(Box::new(exposed)));
    }
    let again = tries.attempt(&Attempt::new(Schedule::Fair), &folder.path().join("second"))?;
    let output = (again.output == tried.output).then(|| tried.output.clone());
    if output.is_none() && tried.wanted.is_none() {
        notices.tell(
            "two runs under the same schedule write different things: output is not compared",
        );
    }
    let usual = Usual { end: tried.end, output, tests: tried.wanted.is_some() };
    let mut search = Search {
        tries,
        usual,
        suspects: Suspects::default(),
        events: AtomicU64::new(0),
        folder: folder.path().into(),
    };
    // Where threads take turns, more of what they have to do with each other is seen.
    let mixed = folder.path().join("mixed");
    let attempt = Attempt::new(Schedule::Random { seed: 1 });
    let failure = search.failure(&attempt, &mixed)?;
    search.suspects = suspicious(&[&first, &mixed], notices)?;
    if let Some(what) = failure {
        let found = Failed { what, run: 3, attempt, file: mixed };
        return search.kept(found, limits, file, notices);
    }
    let (found, made) = search.until(limits, begun)?;
    let Some(found) = found else { return Ok(Answer::Nothing(made)) };
    search.kept(found, limits, file, notices)
}

fn keep(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::copy(from, to)?;
    Ok(())
}

/// Places where a switch may matter.
#[derive(Default)]
struct Suspects {
    /// The instructions of pairs that race, might, or lose updates.
    pairs: BTreeSet<u64>,
    /// Instructions at which threads meet by atomic variables.
    atomics: BTreeSet<u64>,
    /// The instructions of both kinds themselves, without those behind them.
    steps: BTreeSet<u64>,
    /// Entries of functions by which threads wait for each other.
    waits: BTreeSet<u64>,
    /// Entries of all functions of thread libraries and allocators.
    functions: BTreeSet<u64>,
}

impl Suspects {
    /// Threads may be stopped at every function.
    fn passed(&self) -> Vec<SwitchPoint> {
        self.points(&BTreeSet::new())
    }

    /// Threads are held at some places, and may be stopped at every function.
    fn points(&self, held: &BTreeSet<u64>) -> Vec<SwitchPoint> {
        let passed =
            self.functions.difference(held).map(|pc| SwitchPoint { pc: *pc, holds: false });
        held.iter().map(|pc| SwitchPoint { pc: *pc, holds: true }).chain(passed).collect()
    }

    /// The places of the N-th walk: mostly all at which threads have to do with each other, now and then only
    /// those of one kind, or some of them, as a walk has the fewer orders the fewer places it goes by.
    fn walked(&self, turn: u64) -> BTreeSet<u64> {
        let all: BTreeSet<u64> = self.steps.union(&self.waits).copied().collect();
        let some = |number: usize| ((turn >> (number % 6)) ^ (number as u64 / 6)) & 1 == 0;
        let places: BTreeSet<u64> = match turn % 4 {
            1 => self.steps.clone(),
            2 => self.waits.clone(),
            3 => all.iter().enumerate().filter(|(it, _)| some(*it)).map(|(_, pc)| *pc).collect(),
            _ => BTreeSet::new(),
        };
        if places.is_empty() { all } else { places }
    }

    /// Where threads are held the N-th time: kinds of places take turns. Of many places it is now all and
    /// now a few, as a thread that is held everywhere gets nowhere in particular.
    fn held(&self, turn: u64) -> Option<BTreeSet<u64>> {
        const FEW: usize = 2;
        let kinds = [&self.pairs, &self.atomics, &self.waits];
        let kinds: Vec<_> = kinds.into_iter().filter(|kind| !kind.is_empty()).collect();
        let (count, turn) = (kinds.len() as u64, turn as usize);
        let kind = kinds.get((turn as u64).checked_rem(count)? as usize)?;
        let turn = turn / kinds.len();
        if turn.is_multiple_of(2) || kind.len() <= FEW {
            return Some((*kind).clone());
        }
        let first = turn / 2 * FEW % kind.len();
        Some(kind.iter().cycle().skip(first).take(FEW).copied().collect())
    }
}

/// What [`races`] says of some recordings.
fn suspicious(recordings: &[&Path], notices: &Notices) -> anyhow::Result<Suspects> {
    let mut suspects = Suspects::default();
    for recording in recordings {
        let case = Case::open(recording, notices.clone())?;
        let options = races::Options { unprotected: true, ..races::Options::default() };
        let found = races::find(&case, case.main_process(), &options)?;
        suspects.pairs.extend(found.places);
        suspects.atomics.extend(found.meetings);
        suspects.steps.extend(found.steps);
        suspects.waits.extend(found.meeting_functions);
        suspects.functions.extend(found.functions);
    }
    Ok(suspects)
}

/// A run that failed.
struct Failed {
    what: String,
    run: u64,
    attempt: Attempt,
    file: PathBuf,
}

struct Search<'a> {
    tries: &'a dyn Tries,
    usual: Usual,
    suspects: Suspects,
    /// Events of the last run that had any.
    events: AtomicU64,
    folder: PathBuf,
}

impl Search<'_> {
    /// Keeps the recording of a failure, or a shorter one.
    fn kept(
        &self,
        found: Failed,
        limits: Limits,
        file: &Path,
        notices: &Notices,
    ) -> anyhow::Result<Answer> {
        let (best, shortened) = self.shortened(&found, limits.shorten)?;
        keep(&best.file, file)?;
        Ok(Answer::Exposed(Box::new(Exposed {
            what: found.what,
            run: found.run,
            found_with: found.attempt.describe(),
            kept_with: best.attempt.describe(),
            shortened,
            switches: switches(file, notices)?,
        })))
    }

    /// What is tried as the N-th: strategies take turns, so that none that finds nothing is in the way.
    fn attempt(&self, number: u64) -> Attempt {
        // Two of three are walks: few places, and every order of them.
        let (seed, turn) = (number, number / 3);
        if !number.is_multiple_of(3) {
            return self.walk(seed, &self.suspects.walked(number - turn));
        }
        let number = turn;
        let events = self.events.load(Ordering::Relaxed);
        let passed = || self.suspects.passed();
        let depth = 2 + (number / 8 % 3) as u32;
        let held = number.is_multiple_of(2).then(|| self.suspects.held(number / 2)).flatten();
        if let Some(held) = held {
            let switch_points = self.suspects.points(&held);
            return Attempt { switch_points, ..Attempt::new(Schedule::Random { seed }) };
        }
        match number / 2 % 4 {
            0 | 2 => Attempt {
                switch_points: passed(),
                ..Attempt::new(Schedule::Pct { depth, seed, events })
            },
            1 => Attempt { switch_points: passed(), ..Attempt::new(Schedule::Random { seed }) },
            _ => Attempt { cut: true, ..Attempt::new(Schedule::Random { seed }) },
        }
    }

    fn walk(&self, seed: u64, places: &BTreeSet<u64>) -> Attempt {
        let switch_points = places.iter().map(|pc| SwitchPoint { pc: *pc, holds: true }).collect();
        Attempt { switch_points, ..Attempt::new(Schedule::Walk { seed }) }
    }

    /// Makes recordings until one fails; how many there are then, with the three before.
    fn until(&self, limits: Limits, begun: Clock) -> anyhow::Result<(Option<Failed>, u64)> {
        let (next, over) = (AtomicU64::new(3), AtomicBool::new(false));
        let found: Mutex<Option<Failed>> = Mutex::new(None);
        let trouble: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        let work = |worker: usize| {
            while !over.load(Ordering::Relaxed) {
                let run = next.fetch_add(1, Ordering::Relaxed) + 1;
                if run > limits.runs || begun.elapsed() > limits.time {
                    return;
                }
                let attempt = self.attempt(run);
                let file = self.folder.join(format!("run-{worker}"));
                match self.failure(&attempt, &file) {
                    Ok(None) => {}
                    Ok(Some(what)) => {
                        over.store(true, Ordering::Relaxed);
                        let mut found = lock(&found);
                        if found.as_ref().is_none_or(|known| run < known.run) {
                            *found = Some(Failed { what, run, attempt, file });
                        }
                    }
                    Err(error) => {
                        over.store(true, Ordering::Relaxed);
                        *lock(&trouble) = Some(error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for worker in 0..limits.at_once.max(1) {
                scope.spawn(move || work(worker));
            }
        });
        if let Some(error) = lock(&trouble).take() {
            return Err(error);
        }
        let made = next.load(Ordering::Relaxed).min(limits.runs);
        Ok((lock(&found).take(), made))
    }

    /// Makes one recording; what is wrong with it.
    fn failure(&self, attempt: &Attempt, file: &Path) -> anyhow::Result<Option<String>> {
        let tried = self.tries.attempt(attempt, file)?;
        if let Ok(recording) = Recording::open(file)
            && let Some(summary) = recording.summary()
            && summary.events > 0
        {
            self.events.store(summary.events, Ordering::Relaxed);
        }
        Ok(self.usual.failure(&tried))
    }

    /// Looks for a recording that fails alike with fewer switches: by priorities, with as few changes of
    /// them as will do. How many were made besides.
    fn shortened(&self, found: &Failed, most: u64) -> anyhow::Result<(Best, u64)> {
        let kept = self.folder.join("best");
        std::fs::copy(&found.file, &kept)?;
        let switches = count_switches(&kept);
        let mut best = Best { attempt: found.attempt.clone(), file: kept, switches };
        let (file, mut made) = (self.folder.join("shorter"), 0);
        made += self.thinned(found, &mut best, most / 2)?;
        let places = self.suspects.pairs.union(&self.suspects.atomics);
        let places: BTreeSet<u64> = places.chain(&self.suspects.functions).copied().collect();
        let passed = places.into_iter().map(|pc| SwitchPoint { pc, holds: false });
        let passed: Vec<SwitchPoint> = passed.collect();
        let events = self.events.load(Ordering::Relaxed);
        for depth in 1..=3 {
            for seed in 0..most / 6 {
                if best.switches <= u64::from(depth) {
                    return Ok((best, made));
                }
                let schedule = Schedule::Pct { depth, seed, events };
                let attempt = Attempt { switch_points: passed.clone(), ..Attempt::new(schedule) };
                made += 1;
                if self.failure(&attempt, &file)?.as_ref() != Some(&found.what) {
                    continue;
                }
                let switches = count_switches(&file);
                if switches < best.switches {
                    std::fs::copy(&file, &best.file)?;
                    (best.attempt, best.switches) = (attempt, switches);
                }
            }
        }
        Ok((best, made))
    }
}

/// Seeds that each choice of places gets.
const SEEDS: u64 = 3;

impl Search<'_> {
    /// Looks for a walk past fewer places that fails alike: those at which threads were stopped, and of these
    /// fewer and fewer. How many recordings were made.
    fn thinned(&self, found: &Failed, best: &mut Best, most: u64) -> anyhow::Result<u64> {
        let file = self.folder.join("thinner");
        let mut places: Vec<u64> = stops(&best.file).into_iter().collect();
        let (mut made, mut part) = (0, 1);
        // Halves of the places are left out, then quarters, and so on.
        while part <= places.len() && best.switches > 1 {
            let size = places.len().div_ceil(part);
            let mut is_thinner = false;
            for start in (0..places.len()).step_by(size.max(1)) {
                let without = if part == 1 { 0 } else { size };
                let left = places[..start].iter().chain(places.iter().skip(start + without));
                let left: BTreeSet<u64> = left.copied().collect();
                for seed in 0..SEEDS {
                    if made >= most || left.is_empty() {
                        return Ok(made);
                    }
                    made += 1;
                    let attempt = self.walk(seed, &left);
                    if self.failure(&attempt, &file)?.as_ref() != Some(&found.what) {
                        continue;
                    }
                    let switches = count_switches(&file);
                    if switches < best.switches {
                        std::fs::copy(&file, &best.file)?;
                        (best.attempt, best.switches) = (attempt, switches);
                        is_thinner = true;
                        break;
                    }
                }
                if is_thinner {
                    places = stops(&best.file).intersection(&left).copied().collect();
                    break;
                }
            }
            part = if is_thinner { 2 } else { part * 2 };
        }
        Ok(made)
    }
}

/// Where threads were stopped for others.
fn stops(file: &Path) -> BTreeSet<u64> {
    let Ok(recording) = Recording::open(file) else { return BTreeSet::new() };
    let logs = recording.processes().iter().filter_map(|start| recording.log(start.process).ok());
    let stopped = |entry: Entry| match entry {
        Entry::Stop(at) => Some(at.pc),
        _ => None,
    };
    logs.flat_map(|log| entries(log).filter_map(|(entry, _)| stopped(entry))).collect()
}

/// The recording with the fewest switches so far.
struct Best {
    attempt: Attempt,
    file: PathBuf,
    switches: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// How often a thread was stopped for another, in all processes.
fn count_switches(file: &Path) -> u64 {
    let Ok(recording) = Recording::open(file) else { return u64::MAX };
    let stops = recording.processes().iter().map(|start| {
        let Ok(log) = recording.log(start.process) else { return 0 };
        entries(log).filter(|(entry, _)| matches!(entry, Entry::Stop(_))).count() as u64
    });
    stops.sum()
}

/// Most switches that are told.
const MOST_SWITCHES: usize = 50;

/// Frames of a stack that are searched for the program's own code.
const MOST_FRAMES: usize = 24;

/// Where the program's own code stands at a position; in the C library that is whoever called it.
fn own_place(program: &Program, timeline: &mut Timeline, tick: u64, pc: u64) -> Place {
    let here = program.symbolise(Address(pc)).place();
    let Ok(standing) = timeline.seek(Instant { time: tick, pc: Some(pc) }) else { return here };
    let registers = registers_of(&standing.at.thread);
    let stack = program.unwind_at_most(&registers, &At(&standing), MOST_FRAMES);
    let own = stack.frames.iter().map(|frame| frame.code()).find(|code| {
        let module = program.locate(*code).map(|(module, _)| module.loaded());
        module.is_some_and(|loaded| {
            ModuleKind::of(&loaded.path.to_string_lossy()) == ModuleKind::Program
        })
    });
    own.map_or(here, |code| program.symbolise(code).place())
}

/// Where threads of the program were stopped for others.
fn switches(file: &Path, notices: &Notices) -> anyhow::Result<Vec<Switch>> {
    let case = Case::open(file, notices.clone())?;
    let process = case.main_process();
    let maps = crate::check::recorded::mapped(case.session(), process)?;
    let program = case.program(&maps)?;
    let threads = Threads::of(case.recording(), process);
    let mut timeline = case.timeline(process)?;
    let mut running = None;
    let mut stopped = None;
    let mut found = Vec::new();
    for (entry, _) in entries(case.recording().log(process)?) {
        match entry {
            Entry::Image(image) => running = Some(image.running),
            Entry::Stop(at) => stopped = running.map(|thread| (thread, at.time, at.pc)),
            Entry::Switch { thread, time } => {
                if let Some((before, tick, pc)) = stopped.take() {
                    let place = own_place(&program, &mut timeline, tick, pc);
                    let (number, next) =
                        (threads.number(before, Tick(tick)), threads.number(thread, Tick(time)));
                    found.push(Switch { thread: number, place, tick: Tick(tick), next });
                }
                running = Some(thread);
            }
            _ => {}
        }
        if found.len() == MOST_SWITCHES {
            break;
        }
    }
    Ok(found)
}
