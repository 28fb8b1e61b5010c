//! The command line itself: help, wrong arguments, readers that go away, the demonstration.

mod support;

use std::process::Command;
use support::{assert_in_order, build, build_file, errors, root, run, text, tool};

#[test]
fn the_demonstration_goes_from_source_to_explanation() {
    let output = run(&["demo"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let parts = [
        "A crash: where did the pointer come from?\n",
        "$ cc -g -O0 -o shelf shelf.c\n",
        "$ whydunit why -- ./shelf\n",
        "adding up the pages of 3 books\n",
        "shelf was ended by SIGSEGV: it read 4 bytes at 0x8, close to zero",
        "at shelf.c:38 (pages_of)",
        "where book = 0x0",
        "called by pages_to_read (shelf.c:45) <- main (shelf.c:57)",
        "class null-pointer",
        "A wrong number",
        "$ whydunit slice --kind thin --at bill.c:35 --value total -- ./bill\n",
        "total 1880\n",
        "int percent = 100 + discount(item);",
        "A hang",
        "$ whydunit why --timeout 1 -- ./queue\n",
        "it was in an endless loop",
        "(seats_for)",
        "it goes round in memory that the loop does not change",
        "while (first) {",
        "last->next = next;",
        "class endless-loop",
        "Now with a program of yours:  whydunit why -- PROGRAM ARGUMENTS",
    ];
    assert_in_order(&text(&output), &parts);
    assert_eq!(errors(&output), "");
}

#[test]
fn without_a_compiler_the_demonstration_says_what_to_install() {
    let output = tool(&["demo"]).env("PATH", "/nowhere").env_remove("CC").output().expect("run");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        errors(&output),
        "whydunit: the demo needs a C compiler; on Debian: apt-get install gcc libc6-dev\n"
    );
}

/// All that there are.
const COMMANDS: [&str; 22] = [
    "why",
    "run",
    "record",
    "replay",
    "debug",
    "whatif",
    "dap",
    "mcp",
    "slice",
    "step",
    "check",
    "races",
    "expose",
    "learn",
    "anomalies",
    "model",
    "correlate",
    "linearize",
    "count",
    "info",
    "extract",
    "demo",
];

#[test]
fn help_names_every_command_with_examples_and_exit_codes() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output);
    assert_in_order(&told, &["Commands:", "Options:", "Examples:", "Exit codes: 0"]);
    let listed = told.split("Options:").next().unwrap_or_default().lines();
    let named: Vec<_> = listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().filter(|name| *name != "help"))
        .collect();
    assert_eq!(named, COMMANDS);
    for command in COMMANDS {
        let output = run(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        let parts = ["Usage: whydunit", command, "Options:", "Examples:", "Exit codes: 0", "docs/"];
        assert_in_order(&text(&output), &parts);
    }
    for command in ["run", "count"] {
        assert_in_order(&text(&run(&[command, "--help"])), &["--exit-code", "--children"]);
    }
}

#[test]
fn wrong_arguments_exit_2_and_say_what_would_be_right() {
    let rows: [(&[&str], &str); 10] = [
        (&["rum", "ls"], "similar subcommand exists: 'run'"),
        (&["run", "--jsn", "--", "ls"], "similar argument exists: '--json'"),
        (&["run"], "<PROG ARGS>"),
        (&["count", "--exit-code=guets", "--", "ls"], "a similar value exists: 'guest'"),
        (&["run", "--rules", "no-such-rule", "--", "ls"], "no rules are called `no-such-rule`"),
        (&["run", "--", "no-such-program"], "not in the search path"),
        (&["run", "-o", "/no/such/folder/file", "--", "echo"], "cannot write /no/such/folder/file"),
        (&["count", "-o", "/", "--", "echo"], "cannot write /: Is a directory"),
        (&["run", "--save-events", "/dev/null", "--", "echo"], "add `--observe memory`"),
        (&[], "Usage: whydunit"),
    ];
    for (arguments, part) in rows {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(errors(&output).contains(part), "{arguments:?}: {}", errors(&output));
        assert_eq!(text(&output), "");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let crashing = build("kinds.c", "kinds-pipe", &["-g", "-O0"]);
    let (tool, crashing) = (env!("CARGO_BIN_EXE_whydunit"), crashing.display());
    let rows = [
        (format!("{tool} demo | true; exit ${{PIPESTATUS[0]}}"), 0),
        (format!("{tool} --help | true; exit ${{PIPESTATUS[0]}}"), 0),
        (format!("{tool} count --json -- true | true; exit ${{PIPESTATUS[0]}}"), 0),
        (format!("{tool} run --json -- {crashing} null_read | true; exit ${{PIPESTATUS[0]}}"), 1),
        (format!("{tool} run -- {crashing} null_read 2>&1 | true; exit ${{PIPESTATUS[0]}}"), 1),
    ];
    for (words, code) in rows {
        let output = Command::new("bash").args(["-c", &words]).output().expect("a shell");
        assert_eq!(output.status.code(), Some(code), "{words}");
        assert_eq!(errors(&output), "", "{words}");
    }
}

#[test]
fn colour_is_for_terminals() {
    let crashing = build("kinds.c", "kinds-colour", &["-g", "-O0"]);
    let crashing = crashing.to_string_lossy();
    assert!(!errors(&run(&["run", "--", &crashing, "null_read"])).contains('\x1b'));
    let words = format!("{} run -- {crashing} null_read", env!("CARGO_BIN_EXE_whydunit"));
    let on_terminal = |no_color: &str| {
        let mut command = Command::new("script");
        command.args(["-qec", &words, "/dev/null"]).env("NO_COLOR", no_color);
        text(&command.output().expect("script"))
    };
    assert_in_order(&on_terminal(""), &["\x1b[1;31ma NULL pointer is dereferenced"]);
    assert!(!on_terminal("1").contains("\x1b["));
}

#[test]
fn a_report_can_go_to_a_file() {
    let crashing = build("kinds.c", "kinds-file", &["-g", "-O0"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report");
    let file_name = file.to_string_lossy();
    let output = run(&["run", "-o", &file_name, "--", &crashing.to_string_lossy(), "null_read"]);
    assert_eq!((output.status.code(), errors(&output)), (Some(1), String::new()));
    let report = std::fs::read_to_string(&file).expect("a report");
    assert_in_order(
        &report,
        &["whydunit: a NULL pointer is dereferenced", "was ended by SIGSEGV", "registers"],
    );
}

#[test]
fn a_full_disk_is_told_and_where() {
    let output =
        run(&["run", "--observe", "memory", "--save-events", "/dev/full", "--", "echo", "hi"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output), "hi\n");
    let wanted =
        "whydunit: cannot write /dev/full; the events there are not complete: No space left";
    assert!(errors(&output).starts_with(wanted), "{}", errors(&output));
    for command in ["count", "run"] {
        let words =
            format!("{} {command} --json -- true >/dev/full", env!("CARGO_BIN_EXE_whydunit"));
        let output = Command::new("sh").args(["-c", &words]).output().expect("a shell");
        assert_eq!(output.status.code(), Some(2), "{words}");
        let wanted = "whydunit: cannot write to standard output: No space left";
        assert!(errors(&output).starts_with(wanted), "{}", errors(&output));
    }
}

#[test]
fn without_proc_it_says_what_is_missing() {
    let hello =
        build_file(&root().join("tests/programs/hello.c"), "hello-static", &["-static", "-lm"]);
    let bare = tempfile::tempdir().expect("a folder");
    for (from, name) in [(env!("CARGO_BIN_EXE_whydunit").into(), "whydunit"), (hello, "hello")] {
        std::fs::copy(from, bare.path().join(name)).expect("a copy");
    }
    for command in [&["count"][..], &["run", "--rules", "none"]] {
        let mut unshare = Command::new("unshare");
        unshare.args(["-r", "chroot"]).arg(bare.path()).arg("/whydunit");
        let output = unshare.args(command).arg("/hello").output().expect("unshare");
        assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
        assert!(errors(&output).contains("/proc: is it mounted?"), "{}", errors(&output));
    }
}

#[test]
fn completions_and_manual_pages_are_made_for_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = run(&["generate", "man", folder.path().to_str().expect("a path")]);
    assert_eq!(made.status.code(), Some(0), "{}", errors(&made));
    for command in COMMANDS {
        let page = folder.path().join(format!("whydunit-{command}.1"));
        let page = std::fs::read_to_string(page).unwrap_or_else(|_| panic!("a page of {command}"));
        assert!(page.contains("Exit codes"), "{command}: {page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(&["generate", "completions", shell]));
        assert!(COMMANDS.iter().all(|command| script.contains(command)), "{shell}");
    }
    let nowhere = run(&["generate", "man", "/no/such/folder"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(errors(&nowhere).contains("/no/such/folder"), "{}", errors(&nowhere));
}

#[test]
fn options_may_stand_behind_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.wd");
    let file = file.to_str().expect("a path");
    assert!(run(&["record", "-q", "-o", file, "--", "true"]).status.success());
    let (before, behind) = (run(&["info", "--json", file]), run(&["info", file, "--json"]));
    assert_eq!((text(&before), behind.status.code()), (text(&behind), Some(0)));
    let (before, behind) = (run(&["why", "--json", file]), run(&["why", file, "--json"]));
    assert_eq!(text(&before), text(&behind), "{}", errors(&behind));
    let again = run(&["record", "-q", "-o", file, "--", "true"]);
    assert_eq!(errors(&again).matches("run.wd").count(), 1, "{}", errors(&again));
}
