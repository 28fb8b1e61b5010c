//! The exactness programs build, end as they do natively, are short, and are repeatable under the
//! single-step reference.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::programs;
use testkit::singlestep::{Counts, Ending, Session, Start};

/// Longer than this no exactness program may run.
const LONGEST: u64 = 2_000_000;

fn count(program: &Path) -> (Counts, Option<Ending>) {
    let command = [OsString::from(program)];
    let mut session = Session::launch(&command, &Start::AtOnce, Stdio::null()).expect("launched");
    while session.next_step().expect("stepped").is_some() {}
    (*session.counts(), session.ending())
}

fn native(program: &Path) -> Option<Ending> {
    let status = Command::new(program).stdout(Stdio::null()).status().expect("runs");
    status.code().map(Ending::Exit)
}

#[test]
fn there_are_enough_of_them_in_every_language() {
    let sources = programs::sources(&programs::exact()).expect("the folder");
    assert!(sources.len() >= 35, "{}", sources.len());
    for extension in ["c", "cpp", "rs", "s"] {
        let has = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == extension);
        assert!(sources.iter().any(has), "{extension}");
    }
}

#[test]
fn each_ends_under_stepping_as_it_does_natively() {
    let folder = tempfile::tempdir().expect("a folder");
    for source in programs::sources(&programs::exact()).expect("the folder") {
        let program = programs::build(&source, folder.path()).expect("it builds");
        let (counts, ending) = count(&program);
        let name = source.display();
        eprintln!("{name}: {} instructions, {:?}", counts.instructions, ending);
        assert_eq!(ending, native(&program), "{name}");
        assert!(counts.instructions < LONGEST, "{name}: {counts:?}");
        assert!(counts.instructions > 30, "{name}: {counts:?}");
    }
}

#[test]
fn stepping_twice_counts_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["faults.s", "selfmodify.s", "switch.c", "avx.c", "contexts.c"] {
        let program = programs::build(&programs::exact().join(name), folder.path()).expect("built");
        assert_eq!(count(&program), count(&program), "{name}");
    }
}
