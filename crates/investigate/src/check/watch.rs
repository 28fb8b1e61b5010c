//! Checks rules while a program and its children run, and says afterwards what was found.
//!
//! Every program that is started gets a detector of its own. A child that was forked goes on with a
//! copy of its parent's ([`super::forks`]).

use super::choose::Chosen;
use super::findings::{RuleFindings, named};
use super::forks::{Follower, Forks};
use super::modules::{Modules, Wanted, is_c_library};
use super::suspicion::SuspicionReport;
use super::switch::Switch;
use crate::threads::Threads;
use analyze::rules::detector::Detector;
use analyze::rules::machine::Access;
use analyze::rules::machine::chains::Stamp;
use analyze::rules::machine::dynamic;
use analyze::rules::report;
use analyze::rules::stream::{Stream, Suspicion};
use analyze::rules::suppress::Suppression;
use base::{CrashReport, ModuleMap, ProcessNumber, ThreadNumber, Tick, When};
use engine::host::Resolve;
use events::plan::{CONTRACTS, Execution, Observe, Probe, Stops, Syscalls};
use events::suspicion::Suspicion as Met;
use events::{Consumer, Plan, Process};
use recording::Recording;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    threads: Numbers,
}

impl Located {
    /// A process by its number.
    pub fn of(recording: &Recording, process: u32) -> Self {
        let threads = Numbers::Recorded(Threads::of(recording, process));
        Self { process: ProcessNumber(process), threads }
    }

    /// When something happened.
    pub fn when(&self, stamp: Stamp) -> Option<When> {
        let Stamp { position, thread } = stamp;
        let thread = self.thread(thread as i32, position.tick)?;
        Some(When { process: self.process, thread, position })
    }

    /// The process.
    pub fn process(&self) -> ProcessNumber {
        self.process
    }

    /// The number of the thread that has an id at a tick.
    pub fn thread(&self, kernel: i32, tick: Tick) -> Option<ThreadNumber> {
        match &self.threads {
            Numbers::Recorded(threads) => Some(threads.number(kernel, tick)),
            Numbers::Seen(threads) => threads.get(&kernel).copied(),
        }
    }

    /// A process that was watched while it ran: its threads are numbered as they came.
    fn seen(process: usize, detector: &Detector) -> Self {
        let threads = detector.machine.numbered_threads();
        let number = |(kernel, number): (u32, u32)| (kernel as i32, ThreadNumber(number));
        let threads = Numbers::Seen(threads.map(number).collect());
        Self { process: ProcessNumber(process as u32), threads }
    }
}

/// How threads are numbered: as the log of a recording tells, or as they were seen.
#[derive(Clone)]
enum Numbers {
    Recorded(Threads),
    Seen(HashMap<i32, ThreadNumber>),
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
    /// Programs that were started.
    started: AtomicUsize,
}

/// A program that has ended.
struct Checked {
    process: i32,
    /// Which of all programs it was, in the order in which they were started.
    order: usize,
    stream: Stream,
    modules: Modules,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            let contracts = names.iter().any(|name| name == CONTRACTS);
            modules.note(map, &Wanted { names: names.to_vec(), contracts, ..wanted.clone() })
        }))
    }

    fn wanted(&self) -> Wanted {
        let (names, called) = (self.plan.stops.names.clone(), self.called.clone());
        // Only pointers lead to variables.
        let variables = self.plan.observe.execution >= Execution::Addresses;
        let contracts = self.plan.stops.contracts;
        Wanted { names, called, variables, contracts }
    }

    /// The consumer of a process whose program is about to start.
    pub fn consumer(&self, process: i32) -> Box<dyn Consumer> {
        let modules = Modules::default();
        lock(&self.shared.modules).insert(process, modules.clone());
        let mut feed = self.feed(process, modules);
        if let Some(stream) = feed.stream.as_mut().filter(|_| self.follows_all()) {
            stream.begin_at(Tick(0));
        }
        Box::new(feed)
    }

    /// Whether every instruction is told of, so that ticks can be counted.
    fn follows_all(&self) -> bool {
        self.plan.observe.execution > Execution::Unobserved
    }

    fn feed(&self, process: i32, modules: Modules) -> Feed {
        Feed {
            stream: Some(Stream::new(self.detector_of(&modules))),
            process,
            order: self.shared.started.fetch_add(1, Ordering::Relaxed),
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
        let contracts = modules.contracts(0).into_iter();
        let contracts_at = contracts.map(|(name, code)| (code.start, name)).collect();
        let probe =
            |(pc, probe): (u64, dynamic::Probe)| Probe { pc, registers: 1 << probe.register() };
        // Only pointers lead to blocks.
        let follows = self.plan.observe.execution >= Execution::Addresses;
        let probes = modules.probes(0).into_iter().filter(|_| follows).map(probe).collect();
        let stops = Stops { contracts_at, probes, ..Stops::at_functions(functions) };
        (Plan { stops, ..self.plan.clone() }, modules)
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
        let wanted = Wanted { names, called: Vec::new(), variables: false, contracts: false };
        for map in maps {
            modules.note(map, &wanted);
        }
        (modules.functions(0), Box::new(self.feed(process, modules)))
    }

    /// What was found in a run that is over.
    pub fn finish(self, crashes: &[CrashReport]) -> RuleFindings {
        let stopped = self.shared.stopped.load(Ordering::Relaxed);
        let mut found = RuleFindings { stopped, ..RuleFindings::default() };
        let mut checked = std::mem::take(&mut *lock(&self.shared.checked));
        // Who ends first is chance.
        checked.sort_by_key(|checked| checked.order);
        for Checked { process, stream, .. } in &mut checked {
            for crash in crashes.iter().filter(|crash| crash.process == *process) {
                fault(stream, crash);
            }
        }
        for (at, Checked { process, order, stream, modules }) in checked.iter().enumerate() {
            let number = checked[..at].iter().filter(|before| before.process == *process).count();
            let detector = stream.detector();
            // No rule is about where control goes.
            let is_return = |one: &&Suspicion| matches!(one.met, Met::Returned { .. });
            let (returns, others): (Vec<_>, Vec<_>) = stream.suspicions.iter().partition(is_return);
            if !returns.is_empty() {
                found.returned.insert(*process);
            }
            if !(others.is_empty() && detector.hits().is_empty()) {
                found.suspicious.insert(*process);
            }
            if !others.is_empty() {
                let program = modules.program();
                let all = others.into_iter();
                let report =
                    |one: &Suspicion| SuspicionReport::new(*one, &program).of(*process, number);
                found.suspicions.extend(all.map(report));
            }
            let about = (modules, self.shared.suppressions.as_slice());
            let seen = || Located::seen(*order, detector);
            let located = self.located.clone().unwrap_or_else(seen);
            found.add_stream(*process, stream, about, Some(&located));
        }
        if self.shared.first_only {
            found.keep_first();
        }
        found
    }
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
    let contracts = needs.pointers || needs.accesses;
    let stops = Stops { contracts, ..Stops::at_names(detector.function_names()) };
    Plan { observe, stops, ..Plan::default() }
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

/// Tells the detector of functions as they are found, and hands the stream back at the end.
struct Feed {
    stream: Option<Stream>,
    process: i32,
    order: usize,
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
    contracts: usize,
    variables: usize,
    thread_locals: usize,
    probes: usize,
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
        let contracts = modules.contracts(self.contracts);
        self.contracts += contracts.len();
        for (name, code) in contracts {
            detector.add_contract(&name, code);
        }
        let variables = modules.variables(self.variables);
        self.variables += variables.len();
        for (begin, size) in variables {
            detector.machine.variables.add(begin, size);
        }
        let thread_locals = modules.thread_locals(self.thread_locals);
        self.thread_locals += thread_locals.len();
        for (below, size) in thread_locals {
            detector.machine.thread_locals.add(below, size);
        }
        let probes = modules.probes(self.probes);
        self.probes += probes.len();
        for (pc, probe) in probes {
            detector.machine.add_probe(pc, probe);
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
            let frames = named(report::origin(hit), &program);
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
        let (process, order, modules) = (self.process, self.order, self.modules.clone());
        lock(&self.shared.checked).push(Checked { process, order, stream, modules });
    }
}
