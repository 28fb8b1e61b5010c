//! A **case**: a recording opened for questions. One that was made for the purpose goes away with it.

use crate::error::{fault_or_input, of_recording};
use crate::files::Files;
use crate::notices::Notices;
use anyhow::{Context, bail};
use base::moment::Instant;
use base::{ModuleMap, Moment};
use engine::host::Job;
use recording::{End, Origin, ProcessStart, Recording};
use replay::{Session, Timeline};
use std::path::{Path, PathBuf};
use symbols::Program;
use tempfile::TempDir;

/// A recording that is asked about.
pub struct Case {
    session: Session,
    file: PathBuf,
    files: Files,
    notices: Notices,
    _folder: Option<TempDir>,
}

impl Case {
    /// Opens a recording.
    pub fn open(file: &Path, notices: Notices) -> anyhow::Result<Self> {
        let unusable = || format!("{} cannot be replayed", file.display());
        let session = Session::open(file).with_context(unusable)?;
        let files = Files::new(notices.clone());
        Ok(Self { session, file: file.to_owned(), files, notices, _folder: None })
    }

    /// Records a program to a folder of its own, and opens that.
    pub fn record(job: Job, notices: Notices) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no folder for a recording")?;
        let file = folder.path().join("recording");
        let job = Job { record: Some(job.record.unwrap_or_default()), ..job };
        let recorded =
            replay::record(&job, &file, false).map_err(|error| of_recording(&file, error))?;
        recorded.outcome.notes.iter().for_each(|note| notices.tell(note));
        if let Some(why) = recorded.outcome.refused {
            bail!(
                "cannot be recorded any further: {why}; to ask about what came before: \
                 `whydunit record -o FILE`, then ask about FILE"
            );
        }
        let case = Self::open(&file, notices)?;
        Ok(Self { _folder: Some(folder), ..case })
    }

    /// Opens what a job names if it is a recording and nothing else; records the program otherwise.
    pub fn of(job: Job, notices: Notices) -> anyhow::Result<Self> {
        let named = Path::new(&job.program);
        if job.arguments.is_empty() && Recording::open(named).is_ok() {
            return Self::open(named, notices);
        }
        Self::record(job, notices)
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What is in it.
    pub fn recording(&self) -> &Recording {
        self.session.recording()
    }

    /// Its replays.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Where sentences for the user go.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// A process as a line in time.
    pub fn timeline(&self, process: u32) -> anyhow::Result<Timeline> {
        self.session.timeline(process).map_err(fault_or_input)
    }

    /// The program that these files are, where the recording stands in for those that have changed.
    pub fn program(&self, maps: &[ModuleMap]) -> anyhow::Result<Program> {
        Ok(crate::program::program_of(&self.as_recorded(maps)?))
    }

    /// The same mappings, of files as they were when they were recorded.
    pub fn as_recorded(&self, maps: &[ModuleMap]) -> anyhow::Result<Vec<ModuleMap>> {
        let mut maps = maps.to_vec();
        self.files.stand_in(self.recording(), &mut maps)?;
        Ok(maps)
    }

    /// The process to explain: the program itself if a signal ended it, else the first that one did,
    /// else the program.
    pub fn failed_process(&self) -> u32 {
        let program = self.main_process();
        let is_killed = |process: u32| matches!(self.end_of(process), End::Killed(_));
        let processes = self.recording().processes().iter().map(|start| start.process);
        std::iter::once(program)
            .chain(processes)
            .find(|process| is_killed(*process))
            .unwrap_or(program)
    }

    /// The program that was recorded: the last that the first process became.
    pub fn main_process(&self) -> u32 {
        main_process(self.recording())
    }

    /// The process that is meant by a number, or by nothing: then it is the one to explain.
    pub fn process(&self, number: Option<u32>) -> anyhow::Result<u32> {
        let Some(number) = number else { return Ok(self.failed_process()) };
        let all = self.recording().processes();
        anyhow::ensure!(
            all.iter().any(|start| start.process == number),
            "{} has no process {number}; `whydunit info {0}` lists them",
            self.file.display()
        );
        Ok(number)
    }

    /// Where to begin to look at a process: at the crash if it ended in one, else at its start.
    pub fn first_moment(&self, process: u32) -> Moment {
        match self.end_of(process) {
            End::Killed(_) => Moment::END,
            _ => Moment { instant: Instant::Start, thread: None },
        }
    }

    /// How a process ended, as the recording says.
    pub fn end_of(&self, process: u32) -> End {
        let ends = self.recording().summary().map_or(&[][..], |summary| &summary.processes);
        ends.iter().find(|end| end.process == process).map_or(End::Unknown, |end| end.end)
    }

    /// The processes that have done anything.
    pub fn processes(&self) -> Vec<ProcessStart> {
        let begun = |start: &&ProcessStart| self.recording().has_begun(start.process);
        self.recording().processes().iter().filter(begun).cloned().collect()
    }
}

/// The program that was recorded: the last that the first process became.
pub fn main_process(recording: &Recording) -> u32 {
    let mut process = 0;
    while let Some(next) = recording.processes().iter().find(|start| {
        start.parent == Some(process) && start.process > process && start.origin == Origin::Exec
    }) {
        process = next.process;
    }
    process
}
