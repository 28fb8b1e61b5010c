//! Options of `races`: primitives of the program's own, and suppressions.

mod support;

use std::path::{Path, PathBuf};

fn gate(name: &str) -> PathBuf {
    let source = support::root().join("tests/programs/race_options/gate.c");
    support::build_file(&source, name, &["-g", "-O0", "-pthread"])
}

fn file(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

/// Exit code, kinds of findings, and how many were suppressed.
fn races(options: &[&str], program: &Path) -> (Option<i32>, Vec<String>, u64) {
    let output = support::tool(&["races", "--json"]).args(options).arg("--").arg(program).output();
    let output = output.expect("whydunit");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = answer["findings"].as_array().expect("findings");
    let kinds = findings.iter().map(|one| one["kind"].as_str().expect("a kind").to_owned());
    let suppressed = answer["result"]["suppressed"].as_u64().expect("a number");
    (output.status.code(), kinds.collect(), suppressed)
}

#[test]
fn a_lock_of_the_programs_own_orders_what_it_protects() {
    let program = gate("gate");
    let (code, kinds, _) = races(&[], &program);
    assert_eq!(code, Some(1));
    assert!(kinds.iter().all(|kind| kind == "data-race"), "{kinds:?}");
    let sync = file("gate.sync", "lock gate_enter\nunlock gate_leave\n");
    assert_eq!(races(&["--sync", &sync], &program), (Some(0), vec![], 0));
}

#[test]
fn what_is_known_is_left_out_and_counted() {
    let program = gate("gate_known");
    for (name, text) in [
        ("gate.supp", "{\n known\n Helgrind:Race\n ...\n fun:work\n}\n"),
        ("gate.tsan", "# known\nrace:^work$\n"),
    ] {
        let (code, kinds, suppressed) = races(&["--suppressions", &file(name, text)], &program);
        assert_eq!((code, kinds), (Some(0), vec![]), "{name}");
        assert!(suppressed > 0, "{name}");
    }
    let other = file("other.supp", "race:nobody\n");
    assert_eq!(races(&["--suppressions", &other], &program).0, Some(1));
}

#[test]
fn wrong_files_are_refused_with_their_line() {
    for (option, text, words) in [
        ("--sync", "fence f\n", "line 1: there is no role `fence`"),
        ("--suppressions", "what\n", "line 1: expected KIND:PATTERN"),
    ] {
        let name = file(&format!("wrong{option}"), text);
        let output = support::run(&["races", option, &name, "--", "/bin/true"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(support::errors(&output).contains(words), "{}", support::errors(&output));
    }
}
