//! `whydunit replay --count`: a recording has executed what the same run counts by itself.

mod support;

use events::count::Counts;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{build_file, errors};

/// Forks twice over, handles signals, becomes itself again.
const FAMILY: &str = r#"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int caught;
static void handler(int number) { caught += number; }
static void work(int times) {
    for (volatile int i = 0; i < times; i++) continue;
    raise(SIGUSR1);
}
int main(int count, char **words) {
    signal(SIGUSR1, handler);
    work(1000);
    if (count > 1) return caught != SIGUSR1;
    if (fork() == 0) {
        work(200);
        if (fork() == 0) {
            work(30);
            execl(words[0], words[0], "again", (char *)0);
        }
        wait(0);
        _exit(0);
    }
    wait(0);
    return caught != SIGUSR1;
}
"#;

/// The tool where programs are always at the same places: how many instructions it takes to look for
/// the end of a string depends on that.
fn run(arguments: &[&str]) -> String {
    let tool = env!("CARGO_BIN_EXE_whydunit");
    let output = Command::new("setarch").args(["-R", tool]).args(arguments).output();
    let output = output.expect("setarch");
    assert!(output.status.success(), "{arguments:?}: {}", errors(&output));
    String::from_utf8(output.stdout).expect("text")
}

fn json(arguments: &[&str]) -> Value {
    let answer: Value = serde_json::from_str(&run(arguments)).expect("JSON");
    answer["result"].clone()
}

fn program() -> PathBuf {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("family.c");
    std::fs::write(&source, FAMILY).expect("a source");
    build_file(&source, "family", &["-O1"])
}

/// What each thread has executed, under whatever number; one that becomes another program keeps its own.
fn threads<'a>(all: impl IntoIterator<Item = &'a Value>) -> Vec<Counts> {
    let mut sums: BTreeMap<&String, Counts> = BTreeMap::new();
    for counts in all {
        let processes = counts["processes"].as_object().expect("processes");
        for (number, counts) in processes.values().flat_map(|threads| threads.as_object()).flatten()
        {
            let counts = serde_json::from_value(counts.clone()).expect("counts");
            sums.entry(number).or_default().add(&counts);
        }
    }
    let mut sums: Vec<Counts> = sums.into_values().collect();
    sums.sort_by_key(|counts| counts.instructions);
    sums
}

#[test]
fn each_process_counts_what_it_does_itself() {
    let program = program();
    let program = program.to_str().expect("a path");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("family.whydunit");
    let file = file.to_str().expect("a path");
    run(&["record", "--quiet", "-o", file, "--", program]);
    let counts = folder.path().join("counts.json");
    let counts = counts.to_str().expect("a path");
    run(&["count", "--json", "-o", counts, "--", program]);
    let counts = std::fs::read_to_string(counts).expect("counts");
    let counts: Value = serde_json::from_str(&counts).expect("JSON");
    let live = threads([&counts["result"]]);
    assert_eq!(live.len(), 3, "{live:?}");

    let replayed = json(&["replay", "--count", "--json", file]);
    let replayed = replayed.as_array().expect("processes");
    assert_eq!(threads(replayed.iter().map(|report| &report["counts"])), live);
    for report in replayed {
        let number = report["process"].to_string();
        let alone = json(&["replay", "--count", "--json", "--process", &number, file]);
        assert_eq!(alone[0]["counts"]["total"], report["counts"]["total"], "process {number}");
    }
}

/// `record --to` without `--from`: the program was started without its registers.
#[test]
fn a_region_without_a_beginning_begins_with_the_program() {
    let program = program();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("until_work.wd");
    let (program, file) = (program.display().to_string(), file.display().to_string());
    run(&["record", "--force", "--to", "work", "-o", &file, "--", &program]);
    let counts = json(&["replay", "--count", "--json", &file]).to_string();
    assert!(counts.contains("instructions"), "{counts}");
    run(&["replay", "--check", &file]);
}
