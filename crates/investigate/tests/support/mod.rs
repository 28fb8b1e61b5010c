//! What tests of cases share: programs that gcc builds, recorded and opened.
#![allow(dead_code, reason = "every test file uses a part")]

use engine::config::Schedule;
use engine::host::{Job, Record};
use investigate::{Case, Notices};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runners want certain descriptors of the process that starts them: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A program, and its turn.
pub struct Built {
    _turn: MutexGuard<'static, ()>,
    _folder: tempfile::TempDir,
    /// The program.
    pub program: PathBuf,
}

/// Builds a program from `NAME.c`.
pub fn build(name: &str, source: &str, flags: &[&str]) -> Built {
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let (code, program) = (folder.path().join(format!("{name}.c")), folder.path().join(name));
    std::fs::write(&code, source).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-pthread"]).args(flags).arg("-o").args([&program, &code]);
    assert!(gcc.status().expect("gcc runs").success(), "gcc builds {name}");
    Built { _turn: turn, _folder: folder, program }
}

impl Built {
    /// Records the program, and opens the recording.
    pub fn case(&self, schedule: Schedule) -> Case {
        let mut job = Job::new(self.program.clone().into(), Vec::new());
        job.record = Some(Record { schedule, ..Record::default() });
        Case::record(job, Notices::none()).expect("recorded")
    }
}
