//! `whydunit why` on the programs of `examples/bugs`, and `whydunit slice` on one of them: what a
//! reader has to read before the line that is to blame, and what wrong questions are answered with.

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{errors, root, run, text};

/// Program, and how many statements `why` shows before the one marked `ROOT`, at most.
const BUGS: [(&str, usize); 8] = [
    ("atomicity", 0),
    ("dangling", 2),
    ("double_free", 5),
    ("heap_overflow", 4),
    ("null_from_error", 2),
    ("order", 1),
    ("stack_smash", 0),
    ("stale_value", 3),
];

fn source(name: &str) -> PathBuf {
    root().join("examples/bugs").join(format!("{name}.c"))
}

/// Builds an example as its head says.
fn built(name: &str) -> PathBuf {
    let source = source(name);
    let head = std::fs::read_to_string(&source).expect("an example");
    let command =
        head.lines().find_map(|line| line.split_once("build: gcc ")).expect("a build line");
    let flags: Vec<&str> = command.1.split_whitespace().take_while(|flag| *flag != "-o").collect();
    // Tests run at the same time, some of the same program.
    static BUILT: AtomicUsize = AtomicUsize::new(0);
    let number = BUILT.fetch_add(1, Ordering::Relaxed);
    support::build_file(&source, &format!("bug-{name}-{number}"), &flags)
}

/// The line that is to blame.
fn blamed(source: &Path) -> u64 {
    let text = std::fs::read_to_string(source).expect("an example");
    let line = text.lines().position(|line| line.contains("ROOT:")).expect("a marked line");
    line as u64 + 1
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    let answer: Value =
        serde_json::from_str(&text(&output)).unwrap_or_else(|_| panic!("{}", errors(&output)));
    answer["result"].clone()
}

/// How many statements are shown before that line; none if it is not among them.
fn before(name: &str) -> Option<usize> {
    let program = built(name);
    let report = json(&["why", "--json", "--", program.to_str().expect("a plain name")]);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let line = blamed(&source(name));
    let is_it = |told: &Value| told["place"]["line"] == line;
    let copies = list(&report["broken"]).into_iter().flat_map(|finding| list(&finding["evidence"]));
    if let Some(rank) = copies.filter(|step| step["role"] == "copied").position(|step| is_it(&step))
    {
        return Some(rank);
    }
    let statements = list(&report["statements"]);
    let mut shown = statements.iter().filter(|statement| statement["hands_on"] == false);
    shown.position(is_it)
}

#[test]
fn the_line_to_blame_is_among_the_first_that_why_names() {
    let mut counts = Vec::new();
    for (name, most) in BUGS {
        let count = before(name).unwrap_or_else(|| panic!("{name}: the line is not named at all"));
        assert!(count <= most, "{name}: {count} statements are shown before the line to blame");
        counts.push(count);
    }
    counts.sort_unstable();
    assert!(counts[counts.len() - 1] <= 10 && counts[counts.len() / 2] <= 4, "{counts:?}");
}

/// Which of the two functions finds the stack full depends on what lies above it: arguments,
/// environment, the path of the program. So does the round that is told, and what decided it.
#[test]
fn a_full_stack_is_told_by_the_calls_that_come_again() {
    let program = built("endless_recursion");
    let program = program.to_str().expect("a plain name");
    let deeper = blamed(&source("endless_recursion"));
    let rounds = [
        ([deeper, 44], 30, "if (*text == '(')"),
        ([44, deeper], 43, "while (*text && *text != ')')"),
    ];
    for padding in [0, 40, 80, 120] {
        let why = |words: &[&str]| {
            let mut why = support::tool(&[&["why"], words, &["--", program]].concat());
            text(&why.env("PADDING", "x".repeat(padding)).output().expect("the tool"))
        };
        let report: Value = serde_json::from_str(&why(&["--json"])).expect("a report");
        let recursion = &report["result"]["recursion"];
        let calls = recursion["calls"].as_array().expect("calls");
        let lines: Vec<_> = calls.iter().filter_map(|call| call["line"].as_u64()).collect();
        let told = rounds.iter().find(|(calls, ..)| *calls == *lines);
        let (_, condition, source) = told.unwrap_or_else(|| panic!("{report:#}"));
        assert!(recursion["rounds"].as_u64().is_some_and(|rounds| rounds > 1000), "{recursion:#}");
        assert_eq!(recursion["unchanged"], serde_json::json!(["text"]));
        assert_eq!(recursion["changed"], serde_json::json!(["level"]));
        let decided = &report["result"]["statements"][0]["place"]["line"];
        assert_eq!(decided, condition, "the condition that made it call once more");
        support::assert_in_order(
            &why(&[]),
            &["is full", "come again and again", "handed on as it is", "text", "level", source],
        );
    }
}

#[test]
fn one_screen_tells_the_end_the_place_and_the_chain() {
    let program = built("null_from_error");
    let output = run(&["why", "--", program.to_str().expect("a plain name")]);
    let told = text(&output);
    support::assert_in_order(
        &told,
        &[
            "was ended by SIGSEGV",
            "null_from_error.c:53 (name_length)",
            "return NULL;",
            "if (!folder || !may_read(folder))",
            "class null-pointer, fingerprint ",
            "Dig further: ",
        ],
    );
    assert!(told.lines().count() <= 40, "{told}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn slices_grow_with_what_is_followed() {
    let program = built("null_from_error");
    let program = program.to_str().expect("a plain name");
    let lines = |kind: &str| -> Vec<u64> {
        let report = json(&["slice", "--kind", kind, "--json", "--", program]);
        let statements = report["statements"].as_array().expect("statements");
        let own = statements.iter().filter(|statement| statement["own"] == true);
        own.filter_map(|statement| statement["place"]["line"].as_u64()).collect()
    };
    let (thin, data, full) = (lines("thin"), lines("data"), lines("full"));
    assert!(thin.contains(&40) && !thin.contains(&39), "the condition is control: {thin:?}");
    assert!(thin.iter().all(|line| data.contains(line)), "{thin:?} {data:?}");
    assert!(data.iter().all(|line| full.contains(line)), "{data:?} {full:?}");
    assert!(full.contains(&39) && full.contains(&27), "{full:?}");
    assert!(full.len() > data.len());
}

#[test]
fn values_moments_and_forms_of_output() {
    let program = built("stale_value");
    let program = program.to_str().expect("a plain name");
    let at = "stale_value.c:62#2";
    let report =
        json(&["slice", "--kind", "thin", "--at", at, "--value", "value", "--json", "--", program]);
    let statements = report["statements"].as_array().expect("statements");
    let has = |line: u64| statements.iter().any(|s| s["place"]["line"] == line);
    assert!(has(50) && has(44) && !has(57), "{report:#}");
    let dot = text(&run(&[
        "slice", "--kind", "thin", "--at", at, "--value", "value", "--dot", "--", program,
    ]));
    support::assert_in_order(&dot, &["digraph slice {", "question ->", "}"]);
    // The price set later is no part of it, so pruning what it is made of makes it smaller.
    let executions = |extra: &[&str]| {
        let mut arguments =
            vec!["slice", "--kind", "thin", "--at", at, "--value", "value", "--json"];
        arguments.extend(extra);
        arguments.extend(["--", program]);
        json(&arguments)["executions"].as_u64().expect("a number")
    };
    assert!(executions(&["--depth", "2"]) < executions(&[]));
    assert!(executions(&["--prune", "value"]) < executions(&[]));
}

#[test]
fn wrong_questions_are_answered_with_what_to_ask_instead() {
    let program = built("stale_value");
    let program = program.to_str().expect("a plain name");
    let rows: [(&[&str], &str); 8] = [
        (&["--at", "audit", "--value", "valeu"], "value"),
        (&["--at", "stale_value.c:62#7"], "was executed 2 times"),
        (&["--at", "stale_valu.c:62"], "stale_value.c"),
        (&["--at", "audi"], "audit"),
        (&["--at", "@99999999999"], "there is no @99999999999"),
        (&["--value", "$zax"], "no register $zax"),
        (&["--value", "[12]"], "is not [ADDRESS,SIZE]"),
        (&["--at", "stale_value.c:62#x"], "'#x' is not an execution"),
    ];
    for (arguments, expected) in rows {
        let mut all = vec!["slice"];
        all.extend(arguments);
        all.extend(["--", program]);
        let output = run(&all);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let missing = run(&["slice", "--events", "/no/such/file", "--", program]);
    assert_eq!(missing.status.code(), Some(2));
    let wrong = run(&["slice", "--events", program, "--", program]);
    assert!(errors(&wrong).contains("is not a stream of events"), "{}", errors(&wrong));
}

/// Shell commands, and how `why` says that they ended.
const ENDS: [(&str, &str); 6] = [
    ("exec perl -e 'exit -27'", "perl ended with exit code 229"),
    ("kill -KILL $$", "sh was killed (SIGKILL)"),
    ("kill -TERM $$", "sh was ended by SIGTERM: the program sent it to itself"),
    ("kill -SEGV $$", "was ended by SIGSEGV: the program sent it to itself"),
    ("exec false", "false ended with exit code 1"),
    ("sh -c 'kill -BUS $$'; exit 4", "was ended by SIGBUS: the program sent it to itself"),
];

#[test]
fn killed_and_replaced_programs_are_told_as_such() {
    for (command, expected) in ENDS {
        let said = text(&run(&["why", "--", "/bin/sh", "-c", command]));
        let first = said.lines().next().unwrap_or_default();
        assert!(first.contains(expected), "{command}: {said}");
    }
}

#[test]
fn without_debug_information_instructions_are_shown() {
    let program =
        support::build_file(&source("null_from_error"), "null-without-source", &["-O0", "-g0"]);
    let program = program.to_str().expect("a plain name");
    for command in [&["why"][..], &["slice", "--kind", "thin"]] {
        let said = text(&run(&[command, &["--", program]].concat()));
        support::assert_in_order(&said, &["no source", "mov ", "   name_length+0x", " in null-"]);
    }
}
