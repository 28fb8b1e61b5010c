//! Checks rules while a program runs, and says afterwards what was found.

use super::choose::Chosen;
use super::modules::{Modules, is_c_library};
use analyze::rules::detector::{Detector, Undecided};
use analyze::rules::hit::Hit;
use analyze::rules::machine::Access;
use analyze::rules::report;
use analyze::rules::stream::Stream;
use analyze::rules::suppress::{self, NamedFrame};
use base::{Address, Finding};
use engine::host::Resolve;
use engine::report::{CrashReport, ModuleMap};
use events::plan::Syscalls;
use events::{Consumer, Plan};
use std::sync::{Arc, Mutex, PoisonError};
use symbols::Program;

/// Frames that suppressions look at.
const MOST_FRAMES: usize = 24;

/// Rules being checked over the first process of a run. Its children are not checked: what they
/// inherited was not seen.
pub struct Watch {
    modules: Modules,
    stream: Arc<Mutex<Option<Stream>>>,
    plan: Plan,
    /// Functions that rules name.
    called: Vec<String>,
}

/// What was found.
pub struct Found {
    /// The findings, in the order of the run.
    pub findings: Vec<Finding>,
    /// Suppressions for them.
    pub suppressions: Vec<String>,
    /// Findings that were suppressed.
    pub suppressed: usize,
    /// Rules that could not always be decided.
    pub undecided: Vec<Undecided>,
}

impl Watch {
    /// Rules that are about to be checked.
    pub fn new(chosen: &Chosen) -> Self {
        let detector = Detector::new(chosen.rules.clone(), chosen.allocators.clone());
        let plan = plan(&detector);
        let called = detector.needs().functions.iter().cloned().collect();
        let stream = Arc::new(Mutex::new(Some(Stream::new(detector))));
        Self { modules: Modules::default(), stream, plan, called }
    }

    /// What has to be observed.
    pub fn plan(&self) -> Plan {
        self.plan.clone()
    }

    /// Finds the functions that rules name.
    pub fn resolver(&self) -> Resolve {
        self.modules.resolver(self.called.clone())
    }

    /// A piece of a file is mapped somewhere in a recording.
    pub fn mapped(&self, map: &ModuleMap) {
        self.modules.note(map, &self.plan.names, &self.called);
    }

    /// What has to be observed, functions by the addresses that [`Watch::mapped`] found.
    pub fn plan_by_address(&self) -> Plan {
        let functions = self.modules.functions(0).into_iter().map(|(address, _)| address);
        Plan { functions: functions.collect(), names: Vec::new(), ..self.plan.clone() }
    }

    /// The consumer of the first process; none of the others has one.
    pub fn consumer(&self) -> Option<Box<dyn Consumer>> {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let modules = self.modules.clone();
        let back = self.stream.clone();
        Some(Box::new(Feed { stream: Some(stream), modules, back, functions: 0, maps: 0 }))
    }

    /// What was found in a run that is over.
    pub fn finish(self, chosen: &Chosen, crashes: &[CrashReport]) -> Found {
        let mut found = Found {
            findings: Vec::new(),
            suppressions: Vec::new(),
            suppressed: 0,
            undecided: Vec::new(),
        };
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut stream) = stream else { return found };
        if let Some(crash) = crashes.first() {
            fault(&mut stream, crash);
        }
        let program = self.modules.program();
        for hit in stream.detector().hits() {
            let frames = named(hit, &program);
            if chosen.suppressions.iter().any(|one| one.covers(&hit.rule, &frames)) {
                found.suppressed += 1;
                continue;
            }
            found.findings.push(report::finding(hit, &program));
            found.suppressions.push(suppress::write(&hit.rule, &frames));
            if chosen.first_only {
                break;
            }
        }
        found.undecided = stream.detector().undecided();
        found
    }
}

/// What the rules of a detector need to see.
fn plan(detector: &Detector) -> Plan {
    let needs = detector.needs();
    // Who made a system call only the calls before it tell.
    let everything = needs.pointers || needs.accesses || needs.descriptors;
    Plan {
        blocks: everything,
        memory: everything,
        syscalls: if everything { Syscalls::Ranges } else { Syscalls::Answers },
        names: detector.function_names(),
        ..Plan::default()
    }
}

/// An access that ended the program is the last one that rules see.
fn fault(stream: &mut Stream, crash: &CrashReport) {
    const PAGE_FAULT: u64 = 14;
    const WRITES: u64 = 2;
    if crash.trap != PAGE_FAULT {
        return;
    }
    let code = crate::render::crash::code_at(crash, crash.pc);
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
    modules: Modules,
    back: Arc<Mutex<Option<Stream>>>,
    functions: usize,
    maps: usize,
}

impl Consumer for Feed {
    fn records(&mut self, bytes: &[u8]) {
        let Some(stream) = &mut self.stream else { return };
        let functions = self.modules.functions(self.functions);
        self.functions += functions.len();
        for (address, name) in functions {
            stream.detector_mut().add_function(address, &name);
        }
        let maps = self.modules.maps(self.maps);
        self.maps += maps.len();
        for map in maps.iter().filter(|map| is_c_library(&map.path)) {
            stream.detector_mut().add_lenient(map.start..map.end);
        }
        stream.records(bytes);
    }

    fn end(&mut self) {
        let Some(mut stream) = self.stream.take() else { return };
        stream.end();
        *self.back.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
    }
}
