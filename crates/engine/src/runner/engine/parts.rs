//! The parts of an engine, by what belongs together: who needs one of them is handed that one.

use crate::runner::cache::Cache;
use crate::runner::cpu::Registers;
use crate::runner::events::Ring;
use crate::runner::futex::Futexes;
use crate::runner::load::Arguments;
use crate::runner::memory::Memory;
use crate::runner::numbers::Numbers;
use crate::runner::record::Recorder;
use crate::runner::record::region::Region;
use crate::runner::replay::Replayer;
use crate::runner::screens::Screens;
use crate::runner::signal::Actions;
use crate::runner::stops::Stops;
use crate::runner::syscall::trace::Attached;
use crate::runner::thread::Thread;
use crate::runner::translate::instrument::Instrumentation;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::ptr::null_mut;

/// Translations, and what is special about the next one.
pub struct Code {
    /// Translations.
    pub cache: Cache,
    /// Pages that are write-protected because code has been translated, and where that code is:
    /// on the same page, or on one that shows the same bytes.
    pub guarded: BTreeMap<u64, u64>,
    /// An instruction to run by itself, without guarding the page it is on.
    pub alone: Option<u64>,
    /// Where the next piece of code must end, which is then run once.
    pub stop_before: Vec<u64>,
    /// How code is instrumented that is observed.
    pub inside: Instrumentation,
    /// How other code is instrumented.
    pub outside: Instrumentation,
}

impl Code {
    /// No translations yet.
    pub fn new(cache: Cache) -> Self {
        Self {
            cache,
            guarded: BTreeMap::new(),
            alone: None,
            stop_before: Vec::new(),
            inside: Instrumentation::default(),
            outside: Instrumentation::default(),
        }
    }
}

/// The guest's process.
pub struct Process {
    /// Address space.
    pub memory: Memory,
    /// Signal dispositions.
    pub actions: Actions,
    /// What this process is called.
    pub numbers: Numbers,
    /// The guest's executable.
    pub executable: PathBuf,
    /// What it was started with.
    pub arguments: Arguments,
}

/// The guest's threads, but for the running one.
pub struct Threads {
    /// Threads that have been started.
    pub list: Vec<*mut Thread>,
    /// Threads that have not ended.
    pub live: usize,
    /// Stack blocks handed out so far.
    pub blocks: u64,
    /// The guest's first thread.
    pub first: *mut Thread,
    /// Who waits for which word of the guest's, while it is recorded.
    pub futexes: Futexes,
    /// Threads that a process which shares our memory traces.
    pub attached: Attached,
    /// Whether this process has ever traced another.
    pub traces: bool,
}

impl Default for Threads {
    /// The first thread alone, which has not been started.
    fn default() -> Self {
        Self {
            list: Vec::new(),
            live: 1,
            blocks: 1,
            first: null_mut(),
            futexes: Futexes::default(),
            attached: Attached::default(),
            traces: false,
        }
    }
}

/// The recording that is made or replayed.
#[derive(Default)]
pub struct Logging {
    /// What of the run is recorded.
    pub region: Region,
    /// Writes a recording, if one is made.
    pub recorder: Option<Box<Recorder>>,
    /// Reads one, if it is replayed.
    pub replayer: Option<Box<Replayer>>,
}

/// What is observed, and how far that has come.
pub struct Observation {
    /// Event ring, if anything is written there.
    pub ring: Option<Ring>,
    /// How many plans there have been before this one.
    pub plan_number: u32,
    /// The tables of screens.
    pub screens: Screens,
    /// Places of probes and patches.
    pub stops: Stops,
    /// How many accesses have been listed of the one instruction that is about to execute.
    pub listed: Option<usize>,
    /// Registers before the repeated string instruction that is about to execute.
    pub repeating: Option<Box<Registers>>,
}

impl Observation {
    /// Nothing is observed yet.
    pub fn new(ring: Option<Ring>) -> Self {
        Self {
            ring,
            plan_number: 0,
            screens: Screens::default(),
            stops: Stops::default(),
            listed: None,
            repeating: None,
        }
    }
}
