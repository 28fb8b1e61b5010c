//! The same moment, written in every form, means the same position to every command that takes one.

mod support;

use serde_json::Value;
use std::path::Path;
use support::{build_file, errors, run, text};

/// `note` is inlined twice; two threads and a child that crashes.
const SOURCE: &str = r#"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int seen;
static inline __attribute__((always_inline)) void note(int n) {
    seen = n;
}
static __attribute__((noinline)) void left(int n) { note(n); }
static __attribute__((noinline)) void right(int n) { note(n); }
static void *work(void *given) {
    for (int i = 0; i < 6; i++)
        left(i);
    return given;
}
int main(void) {
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        right(i);
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    if (fork() == 0) {
        right(9);
        *(volatile int *)8 = 1;
    }
    wait(0);
    return 0;
}
"#;

fn recording(folder: &Path, name: &str) -> String {
    let source = folder.join("moments.c");
    std::fs::write(&source, SOURCE).expect("written");
    let program = build_file(&source, name, &["-O1", "-fno-ipa-icf", "-g", "-pthread"]);
    let file = folder.join("moments.whydunit").display().to_string();
    run(&["record", "--quiet", "-o", &file, "--", &program.display().to_string()]);
    file
}

fn result(arguments: &[&str]) -> Value {
    let output = run(arguments);
    let told: Value = serde_json::from_str(&text(&output))
        .unwrap_or_else(|_| panic!("{arguments:?}: {}", errors(&output)));
    told["result"].clone()
}

/// Tick and pc.
type Position = (u64, u64);

fn position(value: &Value) -> Position {
    (value["tick"].as_u64().expect("a tick"), value["pc"].as_u64().expect("a pc"))
}

fn replayed(file: &str, process: &str, moment: &str) -> Position {
    position(&result(&["replay", "--json", "--process", process, "--at", moment, file])[0])
}

fn sliced(file: &str, process: &str, moment: &str) -> Position {
    let asked = ["slice", "--json", "--kind", "thin", "--process", process, "--at", moment];
    position(&result(&[&asked[..], &["--value", "$rsp", file]].concat())["position"])
}

/// Where a variable is set.
fn altered(file: &str, process: &str, moment: &str) -> Position {
    let asked = ["whatif", "--json", "--process", process, "--set", "seen=0", "--at", moment, file];
    position(&result(&asked))
}

/// Where a debugger begins; it says so as `@TICK:0xPC/THREAD`.
fn debugged(file: &str, process: &str, moment: &str) -> Position {
    let asked = ["debug", "--batch", "--ex", "monitor when", "--process", process, "--at", moment];
    let output = run(&[&asked[..], &[file]].concat());
    let all = text(&output) + &errors(&output);
    let word = all.split_whitespace().find(|word| word.starts_with('@') && word.contains(":0x"));
    let word = word.unwrap_or_else(|| panic!("{asked:?}: {all}"));
    let (tick, pc) = word[1..].split_once(":0x").expect("a position");
    let pc = pc.split('/').next().unwrap_or_default();
    (tick.parse().expect("a tick"), u64::from_str_radix(pc, 16).expect("a pc"))
}

/// Where a region begins that is cut out from there on.
fn extracted(file: &str, process: &str, moment: &str, folder: &Path) -> Position {
    let region = folder.join("region.whydunit").display().to_string();
    let cut = ["extract", "--force", "--process", process, "--from", moment, "-o", &region, file];
    let output = run(&cut);
    assert!(output.status.success(), "{}", errors(&output));
    position(&result(&["replay", "--json", "--at", "start", &region])[0])
}

#[test]
fn a_moment_is_the_same_position_to_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recording(folder.path(), "moments");
    // The line of `note` is executed ten times by the first process, four of them by its first thread.
    let rows: [(&str, &[&str]); 5] = [
        ("0", &["moments.c:7#2", "moments.c:7#-9", "moments.c:7#2/1", "right#2"]),
        ("0", &["moments.c:7#7", "moments.c:7#3/2", "left#3", "left#-4/2"]),
        ("0", &["moments.c:7", "moments.c:7#last", "moments.c:7#10", "left#6"]),
        // What its parent did before the fork is the child's past, too.
        ("1", &["moments.c:7", "moments.c:7#11", "right"]),
        ("1", &["moments.c:24"]),
    ];
    for (process, forms) in rows {
        let expected = replayed(&file, process, forms[0]);
        let exact = format!("@{}:{:#x}", expected.0, expected.1);
        for form in forms.iter().copied().chain([exact.as_str()]) {
            assert_eq!(replayed(&file, process, form), expected, "replay --at {form}");
            assert_eq!(sliced(&file, process, form), expected, "slice --at {form}");
            let region = extracted(&file, process, form, folder.path());
            assert_eq!(region, expected, "extract --from {form}");
            assert_eq!(altered(&file, process, form), expected, "whatif --at {form}");
        }
        for form in [forms[forms.len() - 1], exact.as_str()] {
            assert_eq!(debugged(&file, process, form), expected, "debug --at {form}");
        }
    }
}

#[test]
fn what_is_no_moment_is_refused_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recording(folder.path(), "no-moments");
    let cases = [
        ("moments.c:7#11", "moments.c:7 was executed 10 times, so there is no moments.c:7#11"),
        ("left/1", "left was never executed by thread 1"),
        ("left/3", "there is no thread /3: the process has 2"),
        ("crash", "the program did not crash; `end` means its end"),
        ("lefd", "did you mean 'left'?"),
        ("@99999999", "the recording ends at @"),
        ("left#0", "'#0' is not an execution; #1 is the first, #-1 or #last the last"),
    ];
    for (moment, expected) in cases {
        let out = folder.path().join("x").display().to_string();
        let commands: [&[&str]; 10] = [
            &["replay", "--process", "0", "--at", moment, &file],
            &["slice", "--process", "0", "--value", "$rsp", "--at", moment, &file],
            &["slice", "--process", "0", "--after", moment, &file],
            &["slice", "--process", "0", "--value", "seen", "--from", moment, &file],
            &["slice", "--process", "0", "--value", "seen", "--to", moment, &file],
            &["slice", "--process", "0", "--value", "seen", "--chop", moment, &file],
            &["extract", "--process", "0", "--from", moment, "-o", &out, &file],
            &["extract", "--process", "0", "--from", "start", "--to", moment, "-o", &out, &file],
            &["debug", "--process", "0", "--batch", "--at", moment, &file],
            &["whatif", "--process", "0", "--set", "seen=0", "--at", moment, &file],
        ];
        for command in commands {
            let output = run(command);
            assert_eq!(output.status.code(), Some(2), "{command:?}");
            let told = errors(&output);
            assert!(told.contains(expected), "{command:?}: {told}");
        }
    }
}
