//! Checks rules while a program and its children run, and says afterwards what was found.
//!
//! Every program that is started gets a detector of its own. A child that was forked goes on with a
//! copy of its parent's ([`super::forks`]).

use super::choose::Chosen;
use super::forks::{Follower, Forks};
use super::modules::{Modules, Wanted, is_c_library};
use super::suspicion::Doubt;
use super::switch::Switch;
use crate::threads::Threads;
use analyze::rules::detector::{Detector, Undecided};
use analyze::rules::hit::Hit;
use analyze::rules::machine::Access;
use analyze::rules::report;
use analyze::rules::stream::{Stream, Suspicion};
use analyze::rules::suppress::{self, NamedFrame, Suppression};
use base::{Address, CrashReport, Finding, ModuleMap, ProcessNumber, Tick, When};
use engine::host::Resolve;
use events::plan::{Execution, Observe, Stops, Syscalls};
use events::{Consumer, Plan, Process};
use recording::Recording;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use symbols::Program;

/// Frames that suppressions look at.
const MOST_FRAMES: usize = 24;

/// Rules being checked.
pub struct Watch {
    detector: Box<dyn Fn() -> Detector + Send + Sync>,
    shared: Arc<Shared>,
    plan: Plan,
    /// Functions that rules name.
    called: Vec<String>,
    switch: Option<Switch>,
    /// The process of a recording that is replayed, if one is.
    located: Option<Located>,
}

/// A process of a recording: what it takes to say when something in it happened.
#[derive(Clone)]
pub struct Located {
    process: ProcessNumber,
    threads: Threads,
}

impl Located {
    /// A process by its number.
    pub fn of(recording: &Recording, process: u32) -> Self {
        let threads = Threads::of(recording, process);
        Self { process: ProcessNumber(process), threads }
    }

    /// When something was found.
    pub fn when(&self, hit: &Hit) -> Option<When> {
        let position = hit.position?;
        let thread = self.threads.number(hit.thread as i32, position.tick);
        Some(When { process: self.process, thread, position })
    }
}

/// What the consumers of all processes share.
#[derive(Default)]
struct Shared {
    /// The files of the program that each process runs now.
    modules: Mutex<HashMap<i32, Modules>>,
    forks: Forks,
    checked: Mutex<Vec<Checked>>,
    suppressions: Vec<Suppression>,
    first_only: bool,
    /// Whether the program was ended at the first finding.
    stopped: AtomicBool,
}

/// A program that has ended.
struct Checked {
    process: i32,
    stream: Stream,
    modules: Modules,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A finding that is told once, however often and in however many processes it was made.
struct Told {
    finding: Finding,
    suppression: String,
    count: u64,
    processes: BTreeSet<i32>,
}

/// What was found.
#[derive(Default)]
pub struct Found {
    /// What is told, in the order of the run.
    told: Vec<Told>,
    /// Findings that were suppressed.
    pub suppressed: usize,
    /// Rules that could not always be decided.
    pub undecided: Vec<Undecided>,
    /// Findings beyond those that are kept.
    pub dropped: u64,
    /// Whether the program was ended at the first of them.
    pub stopped: bool,
    /// The processes in which anything was found or suspected.
    pub suspicious: BTreeSet<i32>,
    /// What was suspected.
    pub doubts: Vec<Doubt>,
    /// Whether something was suspicious and was not checked.
    pub unfollowed: bool,
    /// Whether events were lost on their way, or make no sense.
    pub broken: bool,
}

impl Watch {
    /// Rules that are about to be checked.
    pub fn new(chosen: &Chosen) -> Self {
        let (rules, allocators) = (chosen.rules.clone(), chosen.allocators.clone());
        let detector = move || Detector::new(rules.clone(), allocators.clone());
        let first = detector();
        let shared = Shared {
            suppressions: chosen.suppressions.clone(),
            first_only: chosen.first_only,
            ..Shared::default()
        };
        Self {
            plan: plan(&first),
            called: first.needs().functions.iter().cloned().collect(),
            detector: Box::new(detector),
            shared: Arc::new(shared),
            switch: chosen.switch.clone(),
            located: None,
        }
    }

    /// The same over a process of a recording.
    pub fn of_recording(chosen: &Chosen, recording: &Recording, process: u32) -> Self {
        Self { located: Some(Located::of(recording, process)), ..Self::new(chosen) }
    }

    /// What has to be observed.
    pub fn plan(&self) -> Plan {
        self.plan.clone()
    }

    /// Finds the functions that rules name. One that rules name is found where it is called too: the
    /// C library has several implementations of `memcpy`, and the same ones for `memmove`, so only
    /// the stub that a caller goes through tells which it means.
    pub fn resolver(&self) -> Resolve {
        let (shared, wanted) = (self.shared.clone(), self.wanted());
        Resolve(Arc::new(move |process, map: &ModuleMap, names: &[String]| {
            let modules = lock(&shared.modules).entry(process).or_default().clone();
            modules.note(map, &Wanted { names: names.to_vec(), ..wanted.clone() })
        }))
    }

    fn wanted(&self) -> Wanted {
        let (names, called) = (self.plan.stops.names.clone(), self.called.clone());
        // Only pointers lead to variables.
        let variables = self.plan.observe.execution >= Execution::Addresses;
        Wanted { names, called, variables }
    }

    /// The consumer of a process whose program is about to start.
    pub fn consumer(&self, process: i32) -> Box<dyn Consumer> {
        let modules = Modules::default();
        lock(&self.shared.modules).insert(process, modules.clone());
        Box::new(self.feed(process, modules))
    }

    fn feed(&self, process: i32, modules: Modules) -> Feed {
        Feed {
            stream: Some(Stream::new(self.detector_of(&modules))),
            process,
            follower: self.shared.forks.follow(process),
            parent: None,
            control: None,
            modules,
            shared: self.shared.clone(),
            switch: self.switch.clone(),
            informed: Informed::default(),
        }
    }

    /// The consumer of a process of a recording, and the plan for its replay: functions by the
    /// addresses that they have in these mappings.
    /// `begin` is the tick at which the replay begins.
    pub fn replayed(
        &self,
        process: i32,
        maps: &[ModuleMap],
        begin: Tick,
    ) -> (Plan, Box<dyn Consumer>) {
        let (plan, modules) = self.mapped(maps);
        let mut feed = self.feed(process, modules);
        if let Some(stream) =
            feed.stream.as_mut().filter(|_| plan.observe.execution > Execution::Unobserved)
        {
            stream.begin_at(begin);
        }
        (plan, Box::new(feed))
    }

    /// A detector for a process of a recording, which is told of these mappings, and the plan for its
    /// replay.
    pub fn prepared(&self, maps: &[ModuleMap]) -> (Plan, Detector, Modules) {
        let (plan, modules) = self.mapped(maps);
        let mut detector = self.detector_of(&modules);
        Informed::default().inform(&mut detector, &modules);
        (plan, detector, modules)
    }

    fn mapped(&self, maps: &[ModuleMap]) -> (Plan, Modules) {
        let modules = Modules::default();
        for map in maps {
            modules.note(map, &self.wanted());
        }
        let functions = modules.functions(0).into_iter().map(|(address, _)| address).collect();
        (Plan { stops: Stops::at_functions(functions), ..self.plan.clone() }, modules)
    }

    fn detector_of(&self, modules: &Modules) -> Detector {
        let mut detector = (self.detector)();
        detector.machine.locals.ask(modules.frames());
        detector
    }

    /// The consumer of a process of a recording, and where functions of these names are.
    pub fn located(
        &self,
        process: i32,
        maps: &[ModuleMap],
        names: &[String],
    ) -> (Vec<(u64, String)>, Box<dyn Consumer>) {
        let modules = Modules::default();
        let names = names.to_vec();
        let wanted = Wanted { names, called: Vec::new(), variables: false };
        for map in maps {
            modules.note(map, &wanted);
        }
        (modules.functions(0), Box::new(self.feed(process, modules)))
    }

    /// What was found in a run that is over.
    pub fn finish(self, crashes: &[CrashReport]) -> Found {
        let stopped = self.shared.stopped.load(Ordering::Relaxed);
        let mut found = Found { stopped, ..Found::default() };
        let mut checked = std::mem::take(&mut *lock(&self.shared.checked));
        for Checked { process, stream, .. } in &mut checked {
            for crash in crashes.iter().filter(|crash| crash.process == *process) {
                fault(stream, crash);
            }
        }
        for (at, Checked { process, stream, modules }) in checked.iter().enumerate() {
            let number = checked[..at].iter().filter(|before| before.process == *process).count();
            let detector = stream.detector();
            if !(stream.suspicions.is_empty() && detector.hits().is_empty()) {
                found.suspicious.insert(*process);
            }
            if !stream.suspicions.is_empty() {
                let program = modules.program();
                let all = stream.suspicions.iter();
                let doubt = |one: &Suspicion| Doubt::new(*one, &program).of(*process, number);
                found.doubts.extend(all.map(doubt));
            }
            found.broken |= stream.broken;
            found.undecided.extend(detector.undecided());
            found.dropped += detector.dropped();
            if detector.hits().is_empty() {
                continue;
            }
            let program = modules.program();
            for hit in detector.hits() {
                let when = self.located.as_ref().and_then(|located| located.when(hit));
                found.add((*process, when), hit, &program, &self.shared.suppressions);
            }
        }
        if self.shared.first_only {
            found.keep_first();
        }
        found
    }
}

impl Found {
    /// With what was found elsewhere.
    pub fn extend(&mut self, other: Self) {
        other.told.into_iter().for_each(|told| self.tell(told));
        self.suppressed += other.suppressed;
        self.undecided.extend(other.undecided);
        self.dropped += other.dropped;
        self.stopped |= other.stopped;
        self.unfollowed |= other.unfollowed;
        self.broken |= other.broken;
        self.unfollowed |= other.unfollowed;
        self.suspicious.extend(other.suspicious);
        self.doubts.extend(other.doubts);
    }

    /// Only the first of all findings.
    pub fn keep_first(&mut self) {
        self.told.truncate(1);
    }

    /// With what was found in the run itself, but for what is told better here: with its chains.
    pub fn supplement(&mut self, light: Self) {
        let better = |told: &Told| {
            let known = self.told.iter().map(|one| (&one.finding.kind, &one.finding.place));
            let this = (&told.finding.kind, &told.finding.place);
            known.into_iter().any(|known| known == this)
        };
        let told = light.told.into_iter().filter(|told| !better(told)).collect();
        self.extend(Self { told, ..light });
    }

    /// The findings.
    pub fn findings(&self) -> Vec<Finding> {
        let finding = |told: &Told| {
            let mut finding = told.finding.clone();
            finding.evidence.extend(report::times(told.count, told.processes.len()));
            finding
        };
        self.told.iter().map(finding).collect()
    }

    /// Suppressions for them.
    pub fn suppressions(&self) -> impl Iterator<Item = &str> {
        self.told.iter().map(|told| told.suppression.as_str())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    fn tell(&mut self, told: Told) {
        match self.told.iter_mut().find(|known| is_same(&known.finding, &told.finding)) {
            Some(known) => {
                known.count += told.count;
                known.processes.extend(told.processes);
            }
            None => self.told.push(told),
        }
    }

    /// Adds what a rule found in a process.
    pub fn add(
        &mut self,
        (process, when): (i32, Option<When>),
        hit: &Hit,
        program: &Program,
        suppressions: &[Suppression],
    ) {
        let frames = named(hit, program);
        if suppressions.iter().any(|one| one.covers(&hit.rule, &frames)) {
            self.suppressed += 1;
            return;
        }
        let finding = Finding { when, ..report::finding(hit, program) };
        let suppression = suppress::write(&hit.rule, &frames);
        let processes = BTreeSet::from([process]);
        self.tell(Told { finding, suppression, count: hit.count, processes });
    }
}

/// Whether two findings are the same but for when they were made.
fn is_same(one: &Finding, other: &Finding) -> bool {
    let Finding { kind, title, confidence, place, evidence, when: _ } = one;
    (kind, title, confidence, place, evidence)
        == (&other.kind, &other.title, &other.confidence, &other.place, &other.evidence)
}

/// What the rules of a detector need to see.
fn plan(detector: &Detector) -> Plan {
    let needs = detector.needs();
    // Who made a system call only the calls before it tell.
    let everything = needs.pointers || needs.accesses || needs.descriptors || needs.contents;
    let execution = match everything {
        true if needs.contents => Execution::Values,
        true => Execution::Addresses,
        false => Execution::Unobserved,
    };
    let syscalls = if everything { Syscalls::Ranges } else { Syscalls::Answers };
    let observe = Observe { execution, syscalls, forks: true, ticks: false };
    Plan { observe, stops: Stops::at_names(detector.function_names()), ..Plan::default() }
}

/// An access that ended the program is the last one that rules see.
pub fn fault(stream: &mut Stream, crash: &CrashReport) {
    const PAGE_FAULT: u64 = 14;
    const WRITES: u64 = 2;
    if crash.trap != PAGE_FAULT {
        return;
    }
    let code = crate::crash::code_at(crash, crash.pc);
    let access = Access { address: crash.address, size: 1, write: crash.error & WRITES != 0 };
    stream.fault(crash.pc, &code, access);
}

fn named(hit: &Hit, program: &Program) -> Vec<NamedFrame> {
    let frame = |pc: &u64| {
        let code = program.symbolise(Address(*pc));
        NamedFrame {
            function: code.symbol.map(|(name, _)| name),
            object: code.module.map(|path| path.display().to_string()),
        }
    };
    hit.stack.iter().take(MOST_FRAMES).map(frame).collect()
}

/// Tells the detector of functions as they are found, and hands the stream back at the end.
struct Feed {
    stream: Option<Stream>,
    process: i32,
    follower: Follower,
    /// The process that this one was forked from, until what it knew has come.
    parent: Option<i32>,
    control: Option<Box<dyn events::Control>>,
    modules: Modules,
    shared: Arc<Shared>,
    switch: Option<Switch>,
    informed: Informed,
}

/// How much of what is known of the program's files a detector has been told.
#[derive(Default)]
struct Informed {
    functions: usize,
    variables: usize,
    excused: usize,
    maps: usize,
}

impl Informed {
    fn inform(&mut self, detector: &mut Detector, modules: &Modules) {
        let functions = modules.functions(self.functions);
        self.functions += functions.len();
        for (address, name) in functions {
            detector.add_function(address, &name);
        }
        let variables = modules.variables(self.variables);
        self.variables += variables.len();
        for (begin, size) in variables {
            detector.machine.variables.add(begin, size);
        }
        let excused = modules.excused(self.excused);
        self.excused += excused.len();
        excused.into_iter().for_each(|code| detector.excuse(code));
        let maps = modules.maps(self.maps);
        self.maps += maps.len();
        for map in maps.iter().filter(|map| is_c_library(&map.path)) {
            detector.add_lenient(map.start..map.end);
        }
    }
}

impl Feed {
    /// A child waits for what its parent knew.
    fn inherit(&mut self) {
        let Some(parent) = self.parent.take() else { return };
        let detector = self.shared.forks.take(self.process, parent);
        self.stream = detector.map(Stream::new);
        if self.stream.is_none() {
            self.shared.forks.leave(self.follower);
        }
    }

    /// Children that were forked begin with what is known here.
    fn bequeath(&mut self) {
        for (child, detector) in self.stream.iter_mut().flat_map(|stream| stream.forks.drain(..)) {
            self.shared.forks.give(child as i32, detector);
        }
    }

    /// Whether there is a finding that will be shown.
    fn has_found(&self, stream: &Stream) -> bool {
        let hits = stream.detector().hits();
        if hits.is_empty() || self.shared.suppressions.is_empty() {
            return !hits.is_empty();
        }
        let program = self.modules.program();
        hits.iter().any(|hit| {
            let frames = named(hit, &program);
            !self.shared.suppressions.iter().any(|one| one.covers(&hit.rule, &frames))
        })
    }
}

impl Consumer for Feed {
    fn begin(&mut self, process: Process) {
        if let Some(parent) = process.parent {
            self.parent = Some(parent);
            let mut modules = lock(&self.shared.modules);
            if let Some(files) = modules.get(&parent).map(Modules::fork) {
                modules.insert(self.process, files.clone());
                self.modules = files;
            }
        }
        self.control = Some(process.control);
    }

    fn records(&mut self, bytes: &[u8]) {
        self.inherit();
        let Some(stream) = &mut self.stream else { return };
        self.informed.inform(stream.detector_mut(), &self.modules);
        if let Some(switch) = &mut self.switch {
            switch.apply(stream.detector_mut());
        }
        stream.records(bytes);
        self.bequeath();
        let stops = self.shared.first_only && !self.shared.stopped.load(Ordering::Relaxed);
        if let (true, Some(stream), Some(control)) = (stops, &self.stream, &self.control)
            && self.has_found(stream)
        {
            self.shared.stopped.store(true, Ordering::Relaxed);
            control.end();
        }
    }

    fn end(&mut self) {
        self.inherit();
        self.shared.forks.leave(self.follower);
        let Some(mut stream) = self.stream.take() else { return };
        stream.end();
        let (process, modules) = (self.process, self.modules.clone());
        lock(&self.shared.checked).push(Checked { process, stream, modules });
    }
}
