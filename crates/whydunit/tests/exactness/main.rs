//! Exactness: what the engine says a program executed is what ptrace sees it execute, instruction
//! by instruction, access by access, branch by branch, call by call; and the counts are the same.
//!
//! - `engine_log` runs a program under the engine and reads its event stream;
//! - `reference` steps it natively, with the processor and the kernel that the engine shows it;
//! - `compare` puts the two side by side;
//! - `forms` does so with random cases of every instruction form;
//! - `screens` compares what a filter lets through, `values` what was read and written.

mod compare;
mod engine_log;
mod forms;
mod reference;
mod screens;
mod values;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::programs;

/// Programs built once, by name of their source.
fn build(names: &[&str], folder: &Path) -> HashMap<PathBuf, PathBuf> {
    let wanted =
        |source: &PathBuf| names.is_empty() || names.iter().any(|name| source.ends_with(name));
    let sources = programs::sources(&programs::exact()).expect("the folder of programs");
    sources
        .into_iter()
        .filter(wanted)
        .map(|source| {
            let program = programs::build(&source, folder).expect("it builds");
            (source, program)
        })
        .collect()
}

/// Checks programs side by side, as many at once as there are processors; all that fail are told.
fn check(names: &[&str], superblock: usize) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let programs: Vec<_> = build(names, folder.path()).into_iter().collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let steps = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((source, program)) =
                    programs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    match compare::check(program, superblock) {
                        Ok(count) => {
                            steps.fetch_add(count, Ordering::Relaxed);
                        }
                        Err(difference) => {
                            let text = format!("{}: {difference:#}", source.display());
                            failures.lock().expect("no panic").push(text);
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    assert!(
        failures.is_empty(),
        "{} of {} programs differ:\n\n{}",
        failures.len(),
        programs.len(),
        failures.join("\n\n")
    );
    println!("{} programs agree, {} instructions", programs.len(), steps.into_inner());
    programs.len()
}

#[test]
fn events_and_counts_agree_with_single_stepping() {
    assert!(check(&[], 64) >= 30);
}

/// Programs that are short and yet take every kind of exit.
const VARIED: [&str; 12] = [
    "bit_strings.s",
    "computed_goto.c",
    "enter_leave.s",
    "faults.s",
    "flags.s",
    "gather.s",
    "indirect.s",
    "recursion.c",
    "segments.s",
    "selfmodify.s",
    "strings.s",
    "switch.c",
];

#[test]
fn where_blocks_are_cut_does_not_show_in_the_events() {
    for superblock in [1, 7] {
        assert_eq!(check(&VARIED, superblock), VARIED.len());
    }
}
