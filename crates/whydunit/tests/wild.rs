//! Wild pointers: accesses over the whole address space end as they do natively, in every mode.

mod support;

use std::path::PathBuf;
use support::{build_file, errors, root, run, text};

fn program() -> PathBuf {
    let source = root().join("tests/programs/fault_wild.c");
    build_file(&source, "fault_wild", &["-g", "-O1", "-mavx2"])
}

/// What the program says natively: tens of thousands of faults, each as expected.
fn natively(arguments: &[&str]) -> String {
    let output = std::process::Command::new(program()).args(arguments).output().expect("it runs");
    let said = text(&output);
    assert!(
        output.status.success() && said.contains(" 0 else") && said.ends_with("ok\n"),
        "{said}"
    );
    said
}

fn said_in(mode: &[&str], arguments: &[&str]) -> String {
    let program = program();
    let program = program.to_str().expect("a path");
    let output = run(&[mode, &["--", program], arguments].concat());
    assert!(output.status.success(), "{mode:?}: {}\n{}", text(&output), errors(&output));
    text(&output)
}

#[test]
fn a_wild_pointer_faults_as_it_does_natively_in_every_mode() {
    let expected = natively(&[]);
    let modes: [&[&str]; 8] = [
        &["run", "--rules", "none"],
        &["run"],
        &["run", "--screen"],
        &["run", "--rules", "memory,uninitialised,regions,allocation"],
        &["run", "--observe", "memory"],
        &["run", "--observe", "ticks"],
        &["run", "--observe", "shadow"],
        &["count", "--json", "-o", "/dev/null"],
    ];
    for mode in modes {
        assert_eq!(said_in(mode, &[]), expected, "{mode:?}");
    }
}

#[test]
fn a_wild_pointer_faults_alike_in_a_recording_and_its_replay() {
    let expected = natively(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wild.wrec");
    let file = file.to_str().expect("a path");
    assert_eq!(said_in(&["record", "-o", file], &[]), expected);
    let again = run(&["replay", file]);
    assert!(again.status.success(), "{}", errors(&again));
    assert_eq!(text(&again), expected);
}

/// Where accesses are tested also those 32-bit addresses fault that the tool itself has.
#[test]
fn a_tested_access_never_reaches_the_tool() {
    let expected = natively(&["all"]);
    assert_eq!(said_in(&["run", "--observe", "shadow"], &["all"]), expected);
}
