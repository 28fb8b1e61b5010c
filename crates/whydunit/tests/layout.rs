//! Layouts: the same seed gives the same addresses, another gives others, and a replay has those of its recording.

mod support;

use std::collections::BTreeSet;
use support::{build_file, errors, root, run, text};

/// What the program says of its own addresses.
fn addresses(words: &[&str]) -> String {
    let source = root().join("tests/programs/layout/addresses.c");
    let program = build_file(&source, "layout-addresses", &["-g", "-O1", "-pie", "-fPIE"]);
    let output = run(&[words, &["--", program.to_str().expect("a path")]].concat());
    assert!(output.status.success(), "{words:?}: {}", errors(&output));
    text(&output)
}

fn plain(layout: &[&str]) -> String {
    addresses(&[&["run", "--rules", "none"], layout].concat())
}

#[test]
fn a_seed_is_a_layout() {
    let seeds = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let mut seen = BTreeSet::from([plain(&[])]);
    for seed in seeds {
        let said = plain(&["--layout", seed]);
        assert_eq!(said, plain(&["--layout", seed]), "seed {seed}");
        assert!(seen.insert(said), "seed {seed} is like another");
    }
    // Every part moves: code, heap, stack, library.
    for part in 0..4 {
        let column: BTreeSet<_> =
            seen.iter().map(|said| said.split_whitespace().nth(part)).collect();
        assert!(column.len() > seeds.len() / 2, "part {part}: {column:?}");
    }
    assert_eq!(plain(&[]), plain(&[]), "without a layout nothing varies");
}

#[test]
fn any_layout_is_another_each_time() {
    let all: BTreeSet<String> = (0..4).map(|_| plain(&["--layout", "native"])).collect();
    assert!(all.len() > 1, "{all:?}");
}

#[test]
fn a_replay_has_the_layout_of_its_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in ["3", "4"] {
        let file = folder.path().join(seed);
        let file = file.to_str().expect("a path");
        let said = addresses(&["record", "-o", file, "--layout", seed]);
        assert_eq!(said, plain(&["--layout", seed]));
        let again = run(&["replay", file]);
        assert!(again.status.success(), "{}", errors(&again));
        assert_eq!(text(&again), said);
    }
}

#[test]
fn what_is_no_layout_is_refused() {
    let output = run(&["run", "--layout", "somewhere", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("a layout is a number, or `native`"), "{}", errors(&output));
}
