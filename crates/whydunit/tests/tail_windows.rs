//! Slices of recordings that are longer than their question needs: only the last windows are observed,
//! and the answer is the one that all of them give.

mod support;

use serde_json::Value;
use std::path::Path;
use support::{errors, run, text};

/// Works for long, then follows a null pointer that was made at the end.
const LATE: &str = r#"
static volatile unsigned long sum;
static int numbers[100];
static void work(long rounds) {
    for (long i = 0; i < rounds; i++)
        sum += numbers[i % 100]++;
}
static int *pick(int which) {
    if (which > 99)
        return 0;
    return &numbers[which];
}
int main(int argc, char **argv) {
    work(20000000);
    int *early = pick(3 + argc);
    *early = 1;
    int *late = pick(300);
    return *late;
}
"#;

fn recorded() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("late");
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = folder.join("late.c");
    std::fs::write(&source, LATE).expect("written");
    let program = support::build_file(&source, "late-program", &["-g", "-O0"]);
    let recording = folder.join("late.whydunit").to_str().expect("a plain name").to_owned();
    let program = program.to_str().expect("a plain name");
    run(&["record", "--quiet", "--force", "-o", &recording, "--", program]);
    recording
}

/// Lines of the program that are named, in order.
fn lines(told: &str) -> Vec<u64> {
    let shown = told.lines().filter(|line| line.contains(". ") && line.contains("late.c:"));
    let number = |line: &str| line.split("late.c:").nth(1)?.split(' ').next()?.parse().ok();
    shown.filter_map(number).collect()
}

#[test]
fn only_the_windows_that_a_question_needs_are_observed() {
    let recording = recorded();
    answered_from_the_end(&recording);
    answered_from_everything(&recording);
    counted_from_the_end(&recording);
}

fn answered_from_the_end(recording: &str) {
    let output = run(&["slice", "--kind", "thin", recording]);
    let told = text(&output);
    let observed = "(nothing before the last 1 of ";
    let parts = told.split(observed).nth(1).unwrap_or_else(|| panic!("{told}{}", errors(&output)));
    let parts: u64 = parts.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    assert!(parts >= 6, "{told}");
    assert!(told.contains("late.c:10#-1"), "counted from the end: {told}");
    // What needs numbers from the beginning goes through everything.
    let whole = run(&["slice", "--kind", "thin", "--json", recording]);
    let whole: Value = serde_json::from_str(&text(&whole)).expect("JSON");
    let statements = whole["result"]["statements"].as_array().expect("statements");
    let own = statements.iter().filter(|statement| statement["own"] == true);
    let own: Vec<u64> = own.filter_map(|statement| statement["place"]["line"].as_u64()).collect();
    assert_eq!(lines(&told), own, "{told}");
    assert!(own.contains(&10), "{own:?}");
}

/// A value that was made all along leads back to the beginning.
fn answered_from_everything(recording: &str) {
    let output = run(&["slice", "--kind", "thin", "--value", "sum", recording]);
    let told = text(&output);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(!told.contains("nothing before the last") && told.contains("late.c:6#"), "{told}");
}

/// Moments can be named by numbers from the end, whichever way the answer is found.
fn counted_from_the_end(recording: &str) {
    let ask =
        |at: &str| run(&["slice", "--kind", "data", "--at", at, "--value", "which", recording]);
    for at in ["late.c:9#last", "late.c:9#-1"] {
        let told = text(&ask(at));
        assert!(told.contains("nothing before the last 1"), "{at}: {told}");
        assert_eq!(lines(&told), [8, 17], "{at}: {told}");
    }
    let told = text(&ask("late.c:9#-2"));
    assert_eq!(lines(&told)[..2], [8, 15], "what the kernel gave is the beginning: {told}");
    assert!(!told.contains("nothing before the last"), "{told}");
    assert!(errors(&ask("late.c:9#-3")).contains("was executed 2 times"));
}
