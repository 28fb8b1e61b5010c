//! `whydunit why` on every way a program can end, with the programs of `tests/why/programs`: the class, the
//! sentence, and whether the line that is to blame is among what the report names. The line is marked in the
//! source, and the classes and messages are the languages' own, so neither comes from the tool.

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{errors, root, text};

/// A program, its class, words of the sentence, and at most how many statements come before the line to blame.
/// Of those without a number the line is not asked for: nothing that was executed decided.
const ENDS: [(&str, &str, &str, Option<usize>); 14] = [
    ("assertion.c", "assertion", "Assertion `volume >= 0' failed", Some(5)),
    ("exit_code.c", "exit-code", "ended with exit code 3", Some(5)),
    ("compound_condition.c", "exit-code", "ended with exit code 1", Some(6)),
    ("error_message.c", "exit-code", "ended with exit code 2", Some(9)),
    ("exit_returned.c", "exit-code", "ended with exit code 2", None),
    ("abort_gave_up.c", "abort", "it called abort", Some(5)),
    ("uncaught.cpp", "uncaught-exception", "std::runtime_error: no room for 4", Some(5)),
    ("vector_at.cpp", "uncaught-exception", "std::out_of_range", None),
    ("unwrap_none.rs", "rust-panic", "called `Option::unwrap()` on a `None` value", Some(5)),
    ("index_bounds.rs", "rust-panic", "index out of bounds", Some(5)),
    ("panic_backtrace.rs", "rust-panic", "the len is 3 but the index is 3", Some(9)),
    ("panic_abort.rs", "rust-panic", "panicked: called `Result::unwrap()`", Some(9)),
    ("thread_panic.rs", "rust-panic", "panicked in thread 2: attempt to divide by zero", Some(5)),
    ("null_error_path.c", "null-pointer", "was ended by SIGSEGV", Some(3)),
];

fn source(name: &str) -> PathBuf {
    root().join("tests/why/programs").join(name)
}

/// Builds a program as its head says.
fn built(name: &str, test: &str) -> String {
    let source = source(name);
    let head = std::fs::read_to_string(&source).expect("a program");
    let command = head.lines().find_map(|line| line.split_once("build: ")).expect("a build line").1;
    let command = command.split(';').next().unwrap_or_default();
    let flags: Vec<&str> = command.split_whitespace().skip(1).collect();
    let program =
        support::build_file(&source, &format!("end-{test}-{}", name.replace('.', "-")), &flags);
    program.to_str().expect("a plain name").to_owned()
}

fn blamed(name: &str) -> u64 {
    let text = std::fs::read_to_string(source(name)).expect("a program");
    1 + text.lines().position(|line| line.contains("ROOT")).expect("a marked line") as u64
}

fn why(options: &[&str], program: &str) -> Value {
    let output = support::run(&[&["why", "--json"], options, &["--", program]].concat());
    let answer = text(&output);
    // What the program wrote to standard output stands before the answer.
    let from = answer.find("\n{").map_or(0, |at| at + 1);
    let from = if answer.starts_with('{') { 0 } else { from };
    serde_json::from_str::<Value>(&answer[from..]).unwrap_or_else(|_| panic!("{}", errors(&output)))
        ["result"]
        .clone()
}

/// How many statements are shown before a line.
fn rank(report: &Value, line: u64) -> Option<usize> {
    let shown = report["shown"].as_array().expect("statements");
    shown.iter().position(|shown| {
        let number = shown["statement"].as_u64().expect("a number") as usize;
        report["statements"][number]["place"]["line"] == line
    })
}

#[test]
fn every_ending_is_told_with_its_class_and_the_line_to_blame() {
    for (name, class, sentence, most) in ENDS {
        let report = why(&[], &built(name, "all"));
        assert_eq!(report["class"], class, "{name}: {}", report["ended"]);
        let ended = report["ended"].as_str().unwrap_or_default();
        assert!(ended.contains(sentence), "{name}: {ended}");
        if let Some(most) = most {
            let rank = rank(&report, blamed(name));
            assert!(rank.is_some_and(|rank| rank <= most), "{name}: {rank:?} in {report:#}");
        }
    }
}

#[test]
fn what_an_earlier_call_left_on_the_stack_is_not_blamed_on_it() {
    let report = why(&[], &built("unwritten_local.c", "left"));
    let statements = report["statements"].as_array().expect("statements");
    let of_earlier = |one: &&Value| one["place"]["function"] == "earlier";
    assert_eq!(statements.iter().filter(of_earlier).count(), 0, "{report:#}");
    assert!(statements.iter().any(|one| one["unwritten"] == true), "{report:#}");
    assert!(rank(&report, blamed("unwritten_local.c")).is_some(), "{report:#}");
}

#[test]
fn the_decision_is_shown_with_both_of_its_sides() {
    let report = why(&[], &built("exit_code.c", "sides"));
    let values: Vec<String> = report["shown"]
        .as_array()
        .expect("statements")
        .iter()
        .flat_map(|shown| shown["values"].as_array().cloned().unwrap_or_default())
        .map(|pair| {
            format!("{} = {}", pair[0].as_str().unwrap_or(""), pair[1].as_str().unwrap_or(""))
        })
        .collect();
    for expected in ["wanted = 7", "limit = 2", "users = 1"] {
        assert!(values.iter().any(|value| value == expected), "{expected} in {values:?}");
    }
    assert_eq!(report["said"]["message"], "quota: too many");
    assert_eq!(report["place"]["function"], "die");
}

#[test]
fn a_run_tells_of_a_panic_and_not_of_an_exit_code() {
    let panics = support::run(&["run", "--", &built("unwrap_none.rs", "run")]);
    assert_eq!(panics.status.code(), Some(1), "{}", errors(&panics));
    assert!(errors(&panics).contains("the program panicked: called `Option::unwrap()`"));
    let exits = support::run(&["run", "--", &built("exit_code.c", "run")]);
    assert_eq!(exits.status.code(), Some(0), "{}", errors(&exits));
}

#[test]
fn an_endless_loop_is_told_by_what_keeps_it_going() {
    let program = built("endless_list.c", "loop");
    let report = why(&["--timeout", "1"], &program);
    assert_eq!(report["class"], "endless-loop", "{}", report["ended"]);
    assert_eq!(report["place"]["function"], "sum");
    assert_eq!(report["endless_loop"]["change"], "round");
    assert!(rank(&report, blamed("endless_list.c")).is_some(), "{report:#}");
    let flag = why(&["--timeout", "1"], &built("endless_flag.c", "loop"));
    assert_eq!(flag["endless_loop"]["change"], "nothing", "{flag:#}");
    assert!(rank(&flag, blamed("endless_flag.c")).is_some(), "{flag:#}");
}

#[test]
fn a_deadlock_names_the_locks_and_who_holds_them() {
    let report = why(&["--timeout", "2"], &built("deadlock.c", "locks"));
    assert_eq!(report["class"], "deadlock", "{}", report["ended"]);
    let threads = report["hang"]["threads"].as_array().expect("threads");
    let waits = |number: u64| {
        let thread = threads.iter().find(|thread| thread["thread"] == number).expect("a thread");
        thread["waits"]["lock"].clone()
    };
    for (thread, lock, holder) in [(2, "journal", 3), (3, "accounts", 2)] {
        assert_eq!(waits(thread)["name"], lock, "{threads:#?}");
        assert_eq!(waits(thread)["holder"], holder, "{threads:#?}");
    }
}

#[test]
fn who_waits_for_input_is_told_where_it_was_opened() {
    let report = why(&["--timeout", "1"], &built("waiting_pipe.c", "input"));
    assert_eq!(report["class"], "waiting", "{}", report["ended"]);
    let input = &report["hang"]["threads"][0]["waits"]["input"];
    assert_eq!(input["call"], "read", "{report:#}");
    assert_eq!(input["opened"]["place"]["line"], blamed("waiting_pipe.c"), "{report:#}");
}

/// The position at which gdb would find it is not known, but it must be in the loop, not at the last system call.
#[test]
fn a_recording_that_is_interrupted_reaches_the_moment() {
    let program = support::build("announced_loop.c", "interrupted", &["-g", "-O0"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.whydunit");
    let file = file.to_str().expect("a plain name");
    // Shells start background jobs with SIGINT ignored, and the tests may be one.
    let mut recorder = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_whydunit"), "record", "-o", file, "--"])
        .arg(&program)
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = String::new();
    let output = recorder.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "spinning\n");
    let pid = recorder.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    let limit = Instant::now() + Duration::from_secs(120);
    while recorder.try_wait().expect("waited").is_none() {
        if Instant::now() > limit {
            recorder.kill().expect("killed");
            panic!("the recorder does not end");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = why(&[], file);
    assert!(report["ended"].as_str().unwrap_or_default().contains("SIGINT"), "{}", report["ended"]);
    assert_eq!(report["place"]["function"], "spin", "{report:#}");
}

#[test]
fn a_report_for_an_issue_is_markdown_and_its_fingerprint_stays() {
    let program = built("exit_code.c", "markdown");
    let told = text(&support::run(&["why", "--format", "markdown", "--", &program]));
    support::assert_in_order(
        &told,
        &[
            "### ",
            "ended with exit code 3",
            "- class: `exit-code`",
            "- fingerprint: `",
            "```text\n",
            "```\n",
        ],
    );
    let print = |options: &[&str]| why(options, &program)["fingerprint"].clone();
    assert_eq!(print(&[]), print(&[]), "of the same failure");
    let other = why(&[], &built("assertion.c", "markdown"))["fingerprint"].clone();
    assert_ne!(print(&[]), other);
}
