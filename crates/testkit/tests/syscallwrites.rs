//! The table of what system calls write, held against programs that make all of them and
//! against everyday ones; and the oracle itself, held against tables that are wrong.

mod table;

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use table::{Coverage, Effects};
use testkit::programs;
use testkit::syscallwrites::{Call, Memory, Table, Tally, trace};

fn run<T: Table>(command: &[&str], table: &T) -> Tally {
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    trace(&command, Stdio::null(), Duration::from_secs(300), table).expect("it runs")
}

fn assert_right(name: &str, tally: &Tally) {
    assert!(tally.compared > 0 && !tally.cut_short, "{name}: not all was compared");
    assert_eq!(tally.failures, Vec::<String>::new(), "{name}");
    // The kernel writes there when it likes; a recorded program is told that there is none.
    let unknown: Vec<_> = tally.unknown.keys().filter(|call| *call != "rseq").collect();
    assert_eq!(unknown, Vec::<&String>::new(), "{name}");
}

/// Makes every call that writes, and prints which rows of the table that has shown.
#[test]
fn every_call_that_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/syscalls");
    let mut all = Tally::default();
    for source in programs::sources(&sources).expect("the folder") {
        let program = programs::build(&source, folder.path()).expect("it builds");
        // Those that take a folder take it in turn on a disk and in memory.
        for folder in [None, Some("/dev/shm")] {
            let words = std::iter::once(program.to_str().expect("a plain path")).chain(folder);
            let tally = run(&words.collect::<Vec<_>>(), &Effects);
            assert_right(&source.display().to_string(), &tally);
            all.add(tally);
        }
    }
    let coverage = Coverage::of(&all);
    println!("{} of {} rows exercised", coverage.exercised.len(), coverage.rows());
    println!("refused: {:?}\nnot called: {:?}", coverage.refused, coverage.unseen);
    // What is left needs devices, file systems and rights that a machine may lack.
    assert!(coverage.exercised.len() * 10 >= coverage.rows() * 6, "{}", coverage.exercised.len());
    assert!(coverage.unseen.len() * 20 <= coverage.rows(), "{:?}", coverage.unseen);
}

#[test]
fn everyday_programs() {
    let commands: [&[&str]; 7] = [
        &["ls", "-la", "/usr"],
        &["sh", "-c", "for i in 1 2 3; do echo $i | tr 1 2 | sort; done; wait"],
        &["find", "/etc/init.d", "-type", "f"],
        &["tar", "-cf", "-", "-C", "/etc", "init.d"],
        &["perl", "-e", "print `date`; opendir D, '/'; print readdir D; sleep 0"],
        &["sort", "-R", "/etc/passwd"],
        &["stat", "-f", "/"],
    ];
    for command in commands {
        assert_right(command[0], &run(command, &Effects));
    }
}

/// Lists the same for every call.
struct Says(Vec<(u64, u64)>);

impl Table for Says {
    type Before = ();

    fn before(&self, _: &Call, _: &Memory) {}

    fn written(&self, _: &Call, _: i64, (): &(), _: &Memory) -> Option<Vec<(u64, u64)>> {
        Some(self.0.clone())
    }

    fn row(&self, _: &Call) -> Option<String> {
        None
    }
}

#[test]
fn a_table_that_lists_nothing_is_found_out() {
    let tally = run(&["head", "-c", "100", "/etc/passwd"], &Says(Vec::new()));
    let found = |name: &str| tally.failures.iter().any(|failure| failure.starts_with(name));
    assert!(found("read(") && found("newfstatat("), "{:?}", tally.failures);
}

#[test]
fn a_table_that_lists_what_cannot_be_written_is_found_out() {
    let tally = run(&["true"], &Says(vec![(0, u64::MAX)]));
    let is_named = |failure: &String| failure.ends_with("which cannot be written");
    assert!(
        tally.failure_count > 10 && tally.failures.iter().any(is_named),
        "{:?}",
        tally.failures
    );
}
