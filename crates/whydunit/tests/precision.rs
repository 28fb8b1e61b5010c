//! What each thing that makes slices precise is worth, on a program made to show it. The figures are
//! those of docs/slicing.md; `cargo test --release -p whydunit --test precision -- --nocapture`
//! prints them.

mod support;

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use support::{errors, root, text, tool};

/// A recorded program, and what its head says is asked of it.
struct Asked {
    file: String,
    recording: PathBuf,
    question: Vec<String>,
}

fn asked(name: &str) -> Asked {
    let source = source(name);
    let head = std::fs::read_to_string(&source).expect("a program");
    let line = |word: &str| -> Vec<String> {
        let found = head.lines().find_map(|line| line.split_once(word)).expect("in its head");
        found.1.split_whitespace().map(str::to_owned).collect()
    };
    let build = line("build: ");
    let flags: Vec<&str> = build.iter().skip(1).map(String::as_str).collect();
    let program = support::build_file(&source, &format!("precision-{name}"), &flags);
    let recording = program.with_extension("recording");
    let recorded = tool(&["record", "--quiet", "--force", "--output"])
        .arg(&recording)
        .arg("--")
        .arg(&program)
        .output()
        .expect("the tool");
    assert!(recording.exists(), "{}", errors(&recorded));
    let file = source.file_name().expect("a file").to_string_lossy();
    Asked { file: format!("/{file}"), recording, question: line("ask: ") }
}

/// The source of a program, in C or C++.
fn source(name: &str) -> PathBuf {
    let file =
        |extension| root().join("tests/programs/precision").join(name).with_extension(extension);
    if file("c").exists() { file("c") } else { file("cpp") }
}

/// The line of a program that has a remark.
fn marked(name: &str, remark: &str) -> u64 {
    let text = std::fs::read_to_string(source(name)).expect("a program");
    text.lines().position(|line| line.contains(remark)).expect("marked") as u64 + 1
}

impl Asked {
    fn slice(&self, more: &[&str]) -> Value {
        let mut command = tool(&["slice", "--json"]);
        command.args(&self.question).args(more).arg(&self.recording);
        let output = command.output().expect("the tool");
        let answer: Value =
            serde_json::from_str(&text(&output)).unwrap_or_else(|_| panic!("{}", errors(&output)));
        answer["result"].clone()
    }

    /// Executions of the program's own instructions in the slice, and the lines they are of.
    fn own(&self, more: &[&str]) -> (usize, Vec<u64>) {
        let report = self.slice(&[more, &["--instructions"]].concat());
        let executions = report["executions"].as_array().expect("executions");
        let own = executions.iter().filter(|executed| {
            executed["place"]["file"].as_str().is_some_and(|file| file.ends_with(&self.file))
        });
        let lines: Vec<u64> =
            own.filter_map(|executed| executed["place"]["line"].as_u64()).collect();
        (lines.len(), lines)
    }

    fn statements(&self, more: &[&str]) -> usize {
        self.slice(more)["statements"].as_array().expect("statements").len()
    }
}

/// The row of a program in the table of the documentation: with, without.
fn documented(name: &str) -> (usize, usize) {
    let docs = std::fs::read_to_string(root().join("docs/slicing.md")).expect("documentation");
    let row =
        docs.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{name}.c")));
    let row = row.unwrap_or_else(|| panic!("{name} has no row"));
    let number = |cell: &str| cell.trim().parse().unwrap_or_else(|_| panic!("{row}"));
    let cells: Vec<&str> = row.split('|').collect();
    (number(cells[4]), number(cells[5]))
}

/// Whether programs are built here as they were for the documentation.
fn same_compiler() -> bool {
    let docs = std::fs::read_to_string(root().join("docs/slicing.md")).expect("documentation");
    let version = Command::new("gcc").arg("--version").output().expect("a compiler");
    let version = text(&version);
    version.lines().next().is_some_and(|line| docs.contains(line))
}

fn check(name: &str, with: usize, without: usize) {
    println!("{name}: {with} with, {without} without");
    if same_compiler() {
        assert_eq!((with, without), documented(name), "{name}: docs/slicing.md is to be renewed");
    }
}

#[test]
fn what_comes_after_a_switch_does_not_depend_on_it() {
    let asked = asked("switch");
    let ((with, lines), (without, more)) = (asked.own(&[]), asked.own(&["--ablate", "jumps"]));
    let needless = marked("switch", "not needed");
    assert!(!lines.contains(&needless) && more.contains(&needless), "{lines:?} {more:?}");
    check("switch", with, without);
}

#[test]
fn what_catches_an_exception_depends_on_who_threw_it() {
    let asked = asked("landing");
    let ((with, lines), (without, fewer)) =
        (asked.own(&[]), asked.own(&["--ablate", "non-local-jumps"]));
    let decides = marked("landing", "decides whether");
    assert!(lines.contains(&decides) && !fewer.contains(&decides), "{lines:?} {fewer:?}");
    check("landing", with, without);
}

#[test]
fn saved_registers_lead_nowhere() {
    let asked = asked("saved");
    let ((with, lines), (without, _)) = (asked.own(&[]), asked.own(&["--ablate", "saves"]));
    let in_deep = |line: &u64| (10..=15).contains(line);
    assert!(with < without && !lines.iter().any(in_deep), "{with} {without} {lines:?}");
    check("saved", with, without);
}

#[test]
fn a_register_that_is_made_zero_depends_on_nothing() {
    let asked = asked("idiom");
    let ((with, _), (without, lines)) = (asked.own(&[]), asked.own(&["--ablate", "idioms"]));
    assert!(with < without && lines.contains(&marked("idiom", "thrown away")), "{lines:?}");
    check("idiom", with, without);
}

#[test]
fn a_character_comes_from_one_text() {
    let asked = asked("text");
    let ((with, _), (without, _)) = (asked.own(&[]), asked.own(&["--ablate", "copies"]));
    assert!(with < without, "{with} {without}");
    check("text", with, without);
}

#[test]
fn library_code_is_told_as_calls_and_can_be_unfolded() {
    let asked = asked("library");
    let (folded, unfolded) = (asked.statements(&[]), asked.statements(&["--unfold"]));
    let one = asked.slice(&["--unfold=qsort"]);
    let functions = one["statements"].as_array().expect("statements").iter();
    let functions: Vec<&str> = functions.filter_map(|s| s["place"]["function"].as_str()).collect();
    let is = |name: &str| functions.iter().any(|function| function.contains(name));
    assert!(is("qsort") && !is("vfprintf"), "{functions:?}");
    assert!(folded < unfolded, "{folded} {unfolded}");
    println!("library: {folded} with, {unfolded} without");
}

#[test]
fn a_race_is_seen_in_the_trace_of_all_threads() {
    let asked = asked("race");
    let root_cause = marked("race", "ROOT:");
    let thread = asked.slice(&[])["thread"].to_string();
    let ((with, lines), (without, fewer)) = (asked.own(&[]), asked.own(&["--threads", &thread]));
    assert!(lines.contains(&root_cause) && !fewer.contains(&root_cause), "{lines:?} {fewer:?}");
    check("race", with, without);
}
