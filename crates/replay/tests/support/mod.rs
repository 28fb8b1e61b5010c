//! What tests of sessions share: programs that gcc builds, recorded.

use engine::config::Schedule;
use engine::host::{Job, Record};
use replay::{Session, Timeline};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runners want certain descriptors of the process that starts them: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A recording, and its turn.
pub struct Made {
    _turn: MutexGuard<'static, ()>,
    _folder: tempfile::TempDir,
    /// The file.
    pub file: PathBuf,
}

/// Builds a program and records it.
pub fn record(name: &str, source: &str, schedule: Schedule) -> Made {
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let (code, program) = (folder.path().join(format!("{name}.c")), folder.path().join(name));
    std::fs::write(&code, source).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-pthread", "-o"]).args([&program, &code]).arg("-lm");
    assert!(gcc.status().expect("gcc runs").success(), "gcc builds {name}");
    let file = folder.path().join("recording");
    let mut job = Job::new(program.into(), Vec::new());
    job.record = Some(Record { schedule, ..Record::default() });
    replay::record(&job, &file, false).expect("recorded");
    Made { _turn: turn, _folder: folder, file }
}

/// The first process of a recording.
pub fn open(file: &Path) -> Timeline {
    Session::open(file).expect("a recording").timeline(0).expect("a replay")
}
