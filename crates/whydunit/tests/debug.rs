//! gdb on a recording shows what gdb shows on the live program, and goes back the way it came.

mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { int key; char name[12]; struct node *next; };
static struct node *head;
static int total;
static int weigh(const struct node *node, double factor) {
    double weight = node->key * factor;
    return (int)weight + (int)strlen(node->name);
}
static void add(int key, const char *name) {
    struct node *node = calloc(1, sizeof *node);
    node->key = key;
    strncpy(node->name, name, sizeof node->name - 1);
    node->next = head;
    head = node;
    total += weigh(node, 1.5);
}
int main(void) {
    const char *names[] = {"one", "three", "eleven", "seventeen"};
    for (int i = 0; i < 4; i++)
        add(i * 7, names[i]);
    printf("%d\n", total);
    return 0;
}
"#;

/// What gdb is asked, at each of some stops. Not flags: where nobody reads them they are not kept, and not what nobody
/// wrote: the stack begins elsewhere under gdb.
const LOOK: [&str; 7] =
    ["bt", "info args", "info locals", "p total", "p *head", "p $xmm0.v2_double[0]", "x/3i $pc"];

fn commands(first: &str) -> Vec<String> {
    let mut all: Vec<String> =
        ["set print address off", "break nodes.c:10", first].map(String::from).into();
    for movement in ["next", "finish", "next", "continue", "stepi 2", "up", "continue"] {
        all.push(movement.into());
        for (number, look) in LOOK.iter().enumerate() {
            all.push(format!("echo \\n@{number}\\n"));
            all.push((*look).into());
        }
    }
    all
}

fn built(folder: &Path, flags: &[&str]) -> PathBuf {
    let source = folder.join("nodes.c");
    std::fs::write(&source, PROGRAM).expect("written");
    let program = folder.join("nodes");
    let gcc = Command::new("gcc").args(flags).arg("-o").args([&program, &source]).status();
    assert!(gcc.expect("gcc runs").success());
    program
}

/// From the first look on, without what is about the process itself.
fn looks(text: &str) -> String {
    let from = text.find("\n@0\n").unwrap_or_else(|| panic!("no look in {text}"));
    let kept = text[from..].lines().filter(|line| !line.contains("Inferior") && !line.is_empty());
    kept.collect::<Vec<_>>().join("\n")
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let both = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn on_recording(program: &Path, recording: &Path, commands: &[String], at: &str) -> String {
    if !recording.exists() {
        let mut record = support::tool(&["record", "-q", "-o"]);
        let recorded = record.arg(recording).arg("--").arg(program).output();
        assert!(recorded.expect("it records").status.success());
    }
    let mut debug = support::tool(&["debug", "--batch", "--at", at]);
    commands.iter().for_each(|command| {
        debug.arg("--ex").arg(command);
    });
    run(debug.arg(recording))
}

#[test]
fn the_same_as_on_the_live_program() {
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let program = built(folder.path(), &["-g", level, "-fno-inline"]);
        let live_commands = commands("run");
        let mut live = Command::new("gdb");
        live.args(["-q", "-batch", "-nx"]);
        for command in &live_commands {
            live.arg("-ex").arg(command);
        }
        let expected = looks(&run(live.arg(&program)));
        let recording = folder.path().join("nodes.whydunit");
        let got = looks(&on_recording(&program, &recording, &commands("continue"), "start"));
        assert!(expected.matches("weigh (node=").count() >= 4, "{expected}");
        let same = got.lines().zip(expected.lines()).position(|(got, expected)| got != expected);
        if let Some(at) = same {
            let part = |text: &str| {
                text.lines().skip(at.saturating_sub(4)).take(8).collect::<Vec<_>>().join("\n")
            };
            panic!("{level}, on the recording:\n{}\nlive:\n{}", part(&got), part(&expected));
        }
        assert_eq!(got.lines().count(), expected.lines().count());
    }
}

#[test]
fn back_to_every_write_of_a_variable() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(folder.path(), &["-g", "-O0"]);
    let recording = folder.path().join("nodes.whydunit");
    let commands = [
        "watch total",
        "continue",
        "continue",
        "reverse-continue",
        "reverse-continue",
        "reverse-continue",
    ];
    let text = on_recording(&program, &recording, &commands.map(String::from), "main#1");
    let values: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("New value = ")).collect();
    // 3 and 10 + 5 forwards; then before the second, and before the first.
    assert_eq!(values, ["3", "18", "3", "0"], "{text}");
    assert!(text.contains("No more reverse-execution history"), "{text}");
}

#[test]
fn what_is_written_leaves_the_recording_and_going_back_throws_it_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(folder.path(), &["-g", "-O0"]);
    let recording = folder.path().join("nodes.whydunit");
    let commands = [
        "set var total = 990",
        "p total",
        "tbreak nodes.c:25",
        "continue",
        "p total",
        "when",
        "reverse-continue",
        "p total",
        "p (int)strlen(head->name)",
        "p weigh(head, 10.0)",
        "p total",
        "monitor when",
    ];
    let text = on_recording(&program, &recording, &commands.map(String::from), "add#3");
    let shown: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix('$')?.split(" = ").nth(1)).collect();
    // 3, 10 + 5 and 21 + 6 are weighed in the recording, 31 + 9 last; the third and fourth are added to 990.
    assert_eq!(shown, ["990", "1057", "18", "5", "18"], "{text}");
    assert!(text.contains("Could not write registers"), "vector registers: {text}");
    assert!(text.contains("in a diversion that left the recording at @"), "{text}");
    assert!(text.contains("/1\n"), "the moment: {text}");
}

#[test]
fn gdb_s_conditions_are_asked_on_our_side_both_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(folder.path(), &["-g", "-O0"]);
    let recording = folder.path().join("nodes.whydunit");
    let commands = [
        "break weigh if node->key > 6 && node->key != 14",
        "show breakpoint condition-evaluation",
        "continue",
        "p node->key",
        "continue",
        "p node->key",
        "reverse-continue",
        "p node->key",
        "reverse-continue",
    ];
    let text = on_recording(&program, &recording, &commands.map(String::from), "main#1");
    let shown: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix('$')?.split(" = ").nth(1)).collect();
    assert_eq!(shown, ["7", "21", "7"], "{text}");
    assert!(text.contains("currently target"), "{text}");
    assert!(text.contains("No more reverse-execution history"), "{text}");
}

const ASKS: &str = r#"
#include <signal.h>
#include <unistd.h>
static volatile int got;
static void handler(int signal) { got = signal; }
int main(void) {
    signal(SIGUSR1, handler);
    if (write(1, "a\n", 2) != 2) return 1;
    raise(SIGUSR1);
    if (write(1, "b\n", 2) != 2) return 1;
    return got == 0;
}
"#;

#[test]
fn system_calls_and_signals_stop_gdb_as_they_do_live() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("asks.c"), folder.path().join("asks"));
    std::fs::write(&source, ASKS).expect("written");
    let gcc = Command::new("gcc").args(["-g", "-O0", "-o"]).args([&program, &source]).status();
    assert!(gcc.expect("gcc runs").success());
    let script = |first: &str| {
        let mut all = vec!["break main".to_owned(), first.to_owned(), "catch syscall write".into()];
        for _ in 0..6 {
            all.extend(["continue".to_owned(), "p got".into()]);
        }
        all
    };
    let told = |text: &str| -> Vec<String> {
        let kept = |line: &&str| {
            ["Catchpoint", "Program received", "$"].iter().any(|start| line.starts_with(start))
        };
        // Where the instruction lies depends on the kernel.
        let lines = text.lines().filter(kept).map(|line| line.split(", 0x").next().unwrap_or(line));
        lines.map(str::to_owned).collect()
    };
    let mut live = Command::new("gdb");
    live.args(["-q", "-batch", "-nx"]);
    script("run").iter().for_each(|command| {
        live.arg("-ex").arg(command);
    });
    let expected = told(&run(live.arg(&program)));
    let recording = folder.path().join("asks.whydunit");
    let text = on_recording(&program, &recording, &script("continue"), "start");
    assert!(expected.iter().any(|line| line.contains("SIGUSR1")), "{expected:?}");
    assert!(
        expected.iter().filter(|line| line.contains("syscall write")).count() == 4,
        "{expected:?}"
    );
    // Behind the last stop the live program has gone.
    let (got, lives) = (told(&text), expected.len() - 1);
    assert_eq!(got[..lives.min(got.len())], expected[..lives], "{text}");
}

/// LLDB in batch on a recording: what it shows.
fn lldb(recording: &Path, folder: &Path, at: &str, commands: &[&str]) -> String {
    let (socket, script) = (folder.join("lldb"), folder.join("ours.py"));
    let printed = support::tool(&["debug", "--script", "lldb"]).output().expect("it prints");
    std::fs::write(&script, printed.stdout).expect("written");
    let mut serve = support::tool(&["debug", "--at", at, "--serve"]);
    let mut server =
        serve.arg(&socket).arg(recording).stderr(Stdio::piped()).spawn().expect("it starts");
    // It says so when somebody can connect.
    let mut waits = String::new();
    let said = BufReader::new(server.stderr.take().expect("piped")).read_line(&mut waits);
    assert!(said.is_ok() && waits.contains("waiting for"), "{waits}");
    let mut lldb = Command::new("lldb");
    lldb.args(["-b", "-x", "-o"]).arg(format!("target create {}", folder.join("nodes").display()));
    lldb.arg("-o")
        .arg(format!("process connect --plugin gdb-remote unix-connect://{}", socket.display()));
    lldb.arg("-o").arg(format!("command script import {}", script.display()));
    for command in commands {
        lldb.arg("-o").arg(command);
    }
    // Debian's package does not say where its own modules are.
    if let Some(modules) = python_of_lldb() {
        lldb.env("PYTHONPATH", modules);
    }
    let text = run(&mut lldb);
    let _ = server.kill();
    let _ = server.wait();
    text
}

fn python_of_lldb() -> Option<PathBuf> {
    let llvms = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path().join("lib"));
    let folders = llvms.filter_map(|llvm| std::fs::read_dir(llvm).ok()).flatten().flatten();
    let mut modules = folders.map(|folder| folder.path().join("dist-packages"));
    modules.find(|folder| folder.join("lldb/embedded_interpreter.py").exists())
}

#[test]
fn lldb_goes_both_ways_with_our_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(folder.path(), &["-g", "-O0"]);
    let recording = folder.path().join("nodes.whydunit");
    on_recording(&program, &recording, &[], "start");
    let commands = [
        "breakpoint set --name weigh",
        "continue",
        "continue",
        "frame variable",
        "bt",
        "p total",
        "reverse-continue",
        "p node->key",
        "origin node->key",
        "frame variable key",
        "checkpoint",
        "seek add#4",
        "frame variable key",
        "rollback 1",
        "frame variable key",
        "info checkpoints",
        "breakpoint disable",
        "watchpoint set variable total",
        "continue",
    ];
    let text = lldb(&recording, folder.path(), "main#1", &commands);
    for part in [
        "stop reason = breakpoint 1.1",
        "weigh(node=0x",
        "add(key=7",
        "is made here",
        "(int) key = 21",
        "stop reason = watchpoint",
    ] {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
    assert_eq!(text.matches("(int) key = 0").count(), 2, "there and back to the first: {text}");
}
