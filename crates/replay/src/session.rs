//! Replays the processes of a recording.

use crate::machine::Processor;
use crate::timeline::Timeline;
use engine::host::replayer::Replayer;
use engine::host::{self, ReplayJob, RunError};
use engine::listen::MakeConsumer;
use engine::log_listen::EventSinks;
use engine::report::{CrashReport, ProcessReplay, Replayed};
use events::Plan;
use recording::features::{MissingFeatures, check_features};
use recording::{OpenError, Origin, Recording};
use std::fmt;
use std::fs::File;
use std::os::fd::RawFd;
use std::path::Path;

/// A recording that is asked about.
pub struct Session {
    recording: Recording,
    file: File,
}

/// Why a recording cannot be replayed.
#[derive(Debug)]
pub enum SessionError {
    /// The file is not one that can be used.
    Open(OpenError),
    /// This processor cannot do what the program was told that its processor can.
    Processor(MissingFeatures),
}

impl fmt::Display for SessionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(out),
            Self::Processor(missing) => missing.fmt(out),
        }
    }
}

impl std::error::Error for SessionError {}

/// Whether a replay shows again what the guest wrote to standard output and error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// To this process's own.
    Output,
    /// To a file, with heads that say in which order all processes wrote.
    File(RawFd),
    /// Not at all.
    Nothing,
}

impl Session {
    /// Opens a recording.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        let recording = Recording::open(path).map_err(SessionError::Open)?;
        check_features(recording.meta(), &Processor::here().features())
            .map_err(SessionError::Processor)?;
        let file = File::open(path).map_err(|error| SessionError::Open(OpenError::Io(error)))?;
        Ok(Self { recording, file })
    }

    /// What is in the file.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The way to a process: the one whose log begins with an image, then child after child.
    pub fn path_to(&self, process: u32) -> Vec<u32> {
        let processes = self.recording.processes();
        let find = |number: u32| processes.iter().find(|start| start.process == number);
        let mut path = vec![process];
        let mut at = find(process);
        while let Some(start) = at
            && matches!(start.origin, Origin::Fork { .. })
        {
            let Some(parent) = start.parent.filter(|parent| !path.contains(parent)) else { break };
            path.insert(0, parent);
            at = find(parent);
        }
        path
    }

    /// A process, to be asked about its moments.
    pub fn timeline(&self, process: u32) -> Result<Timeline, RunError> {
        Replayer::start(&self.file, self.path_to(process)).map(Timeline::new)
    }

    /// Replays a process to its end.
    pub fn replay(
        &self,
        process: u32,
        plan: Plan,
        shown: Shown,
        make: MakeConsumer<'_>,
    ) -> Result<Replayed, RunError> {
        self.replay_and_report(process, plan, shown, make).map(|(replayed, _)| replayed)
    }

    /// The same, with the crash that the process ended in.
    pub fn replay_and_report(
        &self,
        process: u32,
        plan: Plan,
        shown: Shown,
        make: MakeConsumer<'_>,
    ) -> Result<(Replayed, Vec<CrashReport>), RunError> {
        let job = ReplayJob { plan, ..self.job(process, shown) };
        let (replays, crashes) = host::replay(&job, EventSinks::for_events(make))?;
        let own = replays.into_iter().find(|replay| replay.process == process);
        let missing = || RunError::Fault { what: "the replay is of another process".into(), pc: 0 };
        own.map(|own| (own.replayed, crashes)).ok_or_else(missing)
    }

    /// Replays a process and, if these are wanted, all that it was forked into, each from where it was made
    /// and with a consumer of its own.
    pub fn replay_processes(
        &self,
        process: u32,
        children: bool,
        plan: Plan,
        shown: Shown,
        make: MakeConsumer<'_>,
    ) -> Result<Vec<ProcessReplay>, RunError> {
        let job = ReplayJob { plan, tree: children, ..self.job(process, shown) };
        host::replay(&job, EventSinks::for_events(make)).map(|(replays, _)| replays)
    }

    fn job(&self, process: u32, shown: Shown) -> ReplayJob<'_> {
        ReplayJob {
            file: &self.file,
            processes: self.path_to(process),
            tree: false,
            plan: Plan::default(),
            superblock_limit: usize::MAX,
            outputs: match shown {
                Shown::Output => Some([1, 2]),
                Shown::File(descriptor) => Some([descriptor; 2]),
                Shown::Nothing => None,
            },
        }
    }
}
