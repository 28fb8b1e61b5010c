//! Races, deadlocks and lost updates of a recorded process: a quick replay finds the memory that threads share,
//! another one looks at that, and again where it turned out that variables are atomic which were taken for plain
//! ones.
//!
//! - this file: what is asked of the replay, and how often;
//! - [`report`]: from sites to sentences;
//! - [`linearizable`]: calls of a data structure against its specification.

pub mod linearizable;
mod report;

use crate::case::Case;
use crate::check::modules::{Modules, Wanted};
use crate::check::recorded;
use crate::error::fault_or_input;
use analyze::races::stream::{Atomics, Facts, LockWord, Races};
use analyze::races::sync::{self, Own};
use analyze::rules::suppress::{NamedFrame, Suppression};
use base::allocator::Allocators;
use base::{Address, Finding, ModuleKind, ModuleMap, PlaceName};
use events::plan::Stops;
use events::{Consumer, Plan};
use recording::log::{Entry, entries};
use replay::Shown;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use symbols::Program;
use syscalls::number as n;

/// What to look for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Also accesses that are ordered in this run, but only by who took a lock first, and that no
    /// common lock protects.
    pub unprotected: bool,
    /// The program's own functions that order threads.
    pub sync: Vec<Own>,
    /// What is known and not to be reported.
    pub suppressions: Vec<Suppression>,
}

/// What was found.
pub struct RaceReport {
    /// The findings: what happened first, then what might.
    pub findings: Vec<Finding>,
    /// Findings that were suppressed.
    pub suppressed: usize,
    /// Threads that ran.
    pub threads: usize,
    /// The instructions of pairs that were found, protected or not: where a switch of threads may
    /// matter.
    pub places: BTreeSet<u64>,
    /// The program's own instructions that access atomic variables that several threads access.
    pub meetings: BTreeSet<u64>,
    /// The same two without the instructions behind them: what threads do to each other, step by step.
    pub steps: BTreeSet<u64>,
    /// Entries of functions of thread libraries by which threads wait for each other.
    pub meeting_functions: BTreeSet<u64>,
    /// Entries of the functions of thread libraries and allocators.
    pub functions: BTreeSet<u64>,
    /// Accesses to shared memory of which nothing was kept, as there is too much of it.
    pub left_out: u64,
    /// Whether the replay could not be followed to its end.
    pub cut_short: Option<String>,
}

/// How often the replay is gone through after the quick pass, at most, to learn which variables are atomic, and who
/// wrote what readers had before the writer was back.
const MOST_PASSES: usize = 3;

/// Looks at one process of a recording.
pub fn find(case: &Case, process: u32, options: &Options) -> anyhow::Result<RaceReport> {
    let maps = recorded::mapped(case.session(), process)?;
    let maps = case.as_recorded(&maps)?;
    let program = crate::program::program_of(&maps);
    let mut facts = facts(&maps, &program, &options.sync)?;
    facts.channels = channels(case, process)?;
    let begin = recorded::begin(case.session(), process)?;
    let quick = Races::survey(facts.clone(), begin.0);
    let (quick, _) = replayed(case, process, &facts, quick)?;
    facts.shared = quick.shared();
    facts.writes = quick.overtaken_writes();
    facts.atomics = learned(&quick, &program, &facts.atomics);
    facts.lock_words = lock_words(&program, quick.locked_instructions());
    let mut passes = 0;
    loop {
        passes += 1;
        let fresh = Races::new(facts.clone(), begin.0, options.unprotected);
        let (races, cut_short) = replayed(case, process, &facts, fresh)?;
        let known = learned(&races, &program, &facts.atomics);
        let writes = races.overtaken_writes();
        let finds = !races.races().is_empty() || !races.predicted().is_empty();
        let is_settled = known == facts.atomics && writes == facts.writes;
        if !finds || is_settled || passes == MOST_PASSES {
            let reporter = report::Reporter::new(case, process, &program, &races);
            let (suppressed, findings): (Vec<_>, Vec<_>) = reporter
                .findings()
                .into_iter()
                .partition(|finding| is_suppressed(finding, &program, &options.suppressions));
            let (places, threads) = (reporter.places(), races.thread_count());
            let functions =
                facts.functions.keys().chain(facts.allocators.keys()).copied().collect();
            let meeting_functions = facts.functions.iter().filter(|(_, role)| role.meets());
            return Ok(RaceReport {
                findings,
                suppressed: suppressed.len(),
                threads,
                places,
                meetings: reporter.meetings(),
                steps: reporter.meeting_places(),
                left_out: races.left_out(),
                meeting_functions: meeting_functions.map(|(entry, _)| *entry).collect(),
                functions,
                cut_short,
            });
        }
        (facts.atomics, facts.writes) = (known, writes);
    }
}

/// What the files of a program say of it.
fn facts(maps: &[ModuleMap], program: &Program, own: &[Own]) -> anyhow::Result<Facts> {
    let allocators = Allocators::default();
    let mut names: Vec<String> = sync::names().map(str::to_owned).collect();
    names.extend(allocators.names());
    let wanted = Wanted { names, called: Vec::new(), variables: false, contracts: false };
    let modules = Modules::default();
    for map in maps {
        modules.note(map, &wanted);
    }
    let mut facts = Facts::default();
    for one in own {
        for location in program.resolve(&PlaceName::Function(one.name.clone()))? {
            facts.functions.insert(location.entry.0, one.role);
            facts.successes.insert(location.entry.0, one.success);
        }
    }
    for (address, name) in modules.functions(0) {
        if let Some(role) = sync::role(&name) {
            facts.functions.insert(address, role);
        } else if let Some(allocator) = allocators.named(&name) {
            facts.allocators.insert(address, allocator);
        }
    }
    for module in program.modules() {
        let loaded = module.loaded();
        let range = loaded.range.start.0..loaded.range.end.0;
        let kind = ModuleKind::of(&loaded.path.to_string_lossy());
        if kind == ModuleKind::Loader {
            facts.excused_code.push(range.clone());
        }
        if is_runtime(&loaded.path) {
            facts.runtime_code.push(range.clone());
        }
        if matches!(kind, ModuleKind::Loader | ModuleKind::CLibrary) {
            facts.excused_memory.push(range);
        }
    }
    Ok(facts)
}

/// Whether a finding is known: one of its stacks is covered.
fn is_suppressed(finding: &Finding, program: &Program, suppressions: &[Suppression]) -> bool {
    let mut stacks: Vec<Vec<NamedFrame>> = Vec::new();
    for step in &finding.evidence {
        let Some(place) = &step.place else { continue };
        let module = place.address.and_then(|address| program.locate(address));
        let object = module.map(|(module, _)| module.loaded().path.display().to_string());
        let frame = NamedFrame { function: place.function.clone(), object };
        match stacks.last_mut() {
            Some(stack) if step.text == report::CALLER => stack.push(frame),
            _ => stacks.push(vec![frame]),
        }
    }
    let covers =
        |stack: &Vec<NamedFrame>| suppressions.iter().any(|one| one.covers(&finding.kind, stack));
    stacks.iter().any(covers)
}

/// Whether a file is a runtime of OpenMP: of gcc, of clang, or of Intel.
fn is_runtime(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["libgomp.", "libomp.", "libiomp5."].iter().any(|known| name.starts_with(known))
}

/// File descriptors that a process got in pairs: the number of a pair for each of both.
fn channels(case: &Case, process: u32) -> anyhow::Result<FxHashMap<i32, u64>> {
    let mut channels = FxHashMap::default();
    for (entry, payload) in entries(case.recording().log(process)?) {
        let Entry::Call(call) = entry else { continue };
        let pairs = matches!(call.number, n::pipe | n::pipe2 | n::socketpair);
        if let (true, 0, Some(ends)) = (pairs, call.answer, payload.first_chunk::<8>()) {
            let [one, other] = [&ends[..4], &ends[4..]]
                .map(|end| i32::from_le_bytes(end.try_into().expect("four of eight bytes")));
            let number = u64::from(one.min(other) as u32);
            channels.extend([(one, number), (other, number)]);
        }
    }
    Ok(channels)
}

/// One pass over the replay.
fn replayed(
    case: &Case,
    process: u32,
    facts: &Facts,
    races: Races,
) -> anyhow::Result<(Races, Option<String>)> {
    let shared = Arc::new(Mutex::new(races));
    let stops = facts.functions.keys().chain(facts.allocators.keys()).copied().collect();
    let plan = Plan { stops: Stops::at_functions(stops), ..Plan::everything() };
    let mut make = |_| -> Box<dyn Consumer> { Box::new(Shared(shared.clone())) };
    let replayed =
        case.session().replay(process, plan, Shown::Nothing, &mut make).map_err(fault_or_input)?;
    let races = Arc::into_inner(shared).expect("the replay has ended");
    let races = races.into_inner().unwrap_or_else(PoisonError::into_inner);
    let broken = races.broken.then(|| "events of the replay make no sense".to_owned());
    Ok((races, replayed.divergence.map(|divergence| divergence.what.to_string()).or(broken)))
}

/// A consumer that is asked when the replay has ended.
struct Shared(Arc<Mutex<Races>>);

impl Consumer for Shared {
    fn records(&mut self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).records(bytes);
    }
}

/// Of locked instructions those that take or give a mutex of Rust's standard library, which is a word that is
/// exchanged wherever it is used. Debug information names the functions that they come from.
fn lock_words(program: &Program, locked: impl Iterator<Item = u64>) -> FxHashMap<u64, LockWord> {
    let one = |pc: u64| {
        let place = program.symbolise(Address(pc));
        // `<std::sys::sync::mutex::futex::Mutex>::lock`, or without the brackets, by the compiler's version.
        let names = place.frames.iter().filter_map(|frame| frame.function.as_deref());
        let mut own = names.filter_map(|name| name.split_once("futex::Mutex"));
        own.find_map(|(_, function)| {
            match function.trim_start_matches('>').trim_start_matches("::") {
                "lock" | "lock_contended" => Some(LockWord::Lock),
                "try_lock" => Some(LockWord::Try),
                "unlock" => Some(LockWord::Unlock),
                _ => None,
            }
        })
    };
    locked.filter_map(|pc| Some((pc, one(pc)?))).collect()
}

/// What is known of atomic accesses after a pass.
fn learned(races: &Races, program: &Program, before: &Atomics) -> Atomics {
    let mut known = before.clone();
    known.words.extend(races.atomic_words());
    for race in races.races().iter().chain(races.predicted()) {
        for access in [race.first, race.second] {
            let pc = races.site(access.seen.site).pc;
            if is_atomic(program, pc, race.address) {
                known.instructions.insert(pc);
            }
        }
    }
    known
}

/// Whether debug information says that an instruction accesses an atomic variable: it is part of a
/// function of the library for them, or the variable has such a type.
fn is_atomic(program: &Program, pc: u64, variable: u64) -> bool {
    let place = program.symbolise(Address(pc));
    let named = place.frames.iter().filter_map(|frame| frame.function.as_deref()).any(|function| {
        ["std::atomic", "std::__atomic", "core::sync::atomic", "AtomicBool", "AtomicUsize"]
            .iter()
            .any(|part| function.contains(part))
    });
    named || program.is_atomic(Address(variable))
}
