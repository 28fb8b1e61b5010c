//! Runs under rules as a whole: ended at the first finding, over recordings, screened, with children,
//! with rules switched off, and with guests that do their worst.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TOOL: &str = env!("CARGO_BIN_EXE_whydunit");

const SCREENED: [&str; 6] = ["run", "--json", "--screen", "--rules", "memory", "--"];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/rules")
}

/// A program of `tests/programs/rules`, built.
fn build(folder: &Path, name: &str) -> PathBuf {
    let source = sources().join(name);
    let binary = folder.join(source.file_stem().expect("a file"));
    let compiler = if name.ends_with(".cpp") { "g++" } else { "gcc" };
    let mut command = Command::new(compiler);
    let status = command.args(["-g", "-w", "-pthread", "-o"]).arg(&binary).arg(&source).status();
    assert!(status.expect("a compiler").success(), "{name} does not build");
    binary
}

fn tool(words: &[&str], command: &[&Path]) -> Output {
    let mut tool = Command::new(TOOL);
    tool.args(words).args(command).output().expect("the tool runs")
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    // What the program printed is not among it.
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}\n{}", String::from_utf8_lossy(&output.stderr))
    })
}

fn kinds(report: &Value) -> BTreeSet<String> {
    let all = report["findings"].as_array().expect("a list").iter();
    all.map(|finding| finding["kind"].as_str().expect("a kind").to_owned()).collect()
}

fn set(kinds: &[&str]) -> BTreeSet<String> {
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

#[test]
fn the_first_finding_ends_a_program_that_would_never_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "wild/forever.c");
    let output = tool(
        &["run", "--json", "--rules", "memory,uninitialised", "--stop-at-first", "--"],
        &[&program],
    );
    let report = json(&output);
    assert_eq!(kinds(&report), set(&["dangling-pointer"]));
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(1));
    assert_eq!(output.status.code(), Some(1));
    let output = tool(&["run", "--json", "--stop-at-first", "--"], &[&program]);
    assert_eq!(kinds(&json(&output)), set(&["dangling-pointer"]), "also without rules by name");
}

#[test]
fn memory_bugs_are_found_without_any_option() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, kind) in [
        ("overflow_write.c", "heap-overflow"),
        ("dangling_read.c", "dangling-pointer"),
        ("double_plain.c", "double-free"),
    ] {
        let program = build(folder.path(), name);
        let output = tool(&["run", "--json", "--"], &[&program]);
        assert!(kinds(&json(&output)).contains(kind), "{name}");
        assert_eq!(output.status.code(), Some(1), "{name}");
        let output = tool(&["run", "--json", "--rules", "none", "--"], &[&program]);
        assert!(!kinds(&json(&output)).contains(kind), "{name}");
    }
    let program = build(folder.path(), "uninitialised_list.c");
    let long = tool(&["run", "--follow", "0", "--window", "1", "--"], &[&program]);
    let said = String::from_utf8_lossy(&long.stderr);
    assert!(
        said.contains("something is suspicious") && said.contains("1 of 1 suspicions"),
        "{said}"
    );
    assert_eq!(long.status.code(), Some(3), "not decided");
    let events = folder.path().join("events");
    let words = ["run", "--json", "--observe", "blocks", "--save-events"];
    let words = [&words[..], &[events.to_str().expect("text"), "--"]].concat();
    let observed = tool(&words, &[&program]);
    assert_eq!(kinds(&json(&observed)), set(&[]), "who observes does not check");
}

#[test]
fn a_program_without_symbols_is_told_by_its_addresses() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "dangling_read.c");
    let stripped = Command::new("strip").arg(&program).status();
    assert!(stripped.expect("binutils").success());
    let output = tool(&["run", "--json", "--"], &[&program]);
    let finding = &json(&output)["findings"][0];
    let place = finding["place"].as_object().expect("a place");
    assert!(!place.contains_key("file") && !place.contains_key("function"), "{place:?}");
    // Where it is in the file is the same every time; where the file is, is not.
    let steps = finding["evidence"].as_array().expect("steps");
    let frame = steps.iter().find(|step| step["place"]["address"] == place["address"]);
    let text = frame.and_then(|step| step["text"].as_str()).expect("a frame");
    assert!(text.starts_with("#0 ") && text.contains(" in dangling_read+0x"), "{text}");
}

#[test]
fn a_check_that_may_take_long_says_so_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |seconds: &str| {
        let file = folder.path().join(seconds);
        let words = ["record", "--quiet", "-o", file.to_str().expect("a path"), "--"];
        let recorded = tool(&words, &[Path::new("sleep"), Path::new(seconds)]);
        assert_eq!(recorded.status.code(), Some(0));
        let checked = tool(&["check"], &[&file]);
        assert_eq!(checked.status.code(), Some(0), "nothing is wrong with sleep");
        let said = String::from_utf8_lossy(&checked.stderr).contains("hundred times as long");
        // On a busy machine even the short one takes long.
        let recording = recording::Recording::open(&file).expect("a recording");
        let took = recording.summary().expect("it is complete").duration;
        assert_eq!(said, took >= 500_000_000, "{seconds} s took {took} ns");
        said
    };
    assert!(said("0.6"));
    said("0");
}

#[test]
fn a_recording_shows_the_access_that_ended_the_program_the_same_every_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "null_field.c");
    let file = folder.path().join("run.wd");
    tool(&["record", "-q", "-o", file.to_str().expect("text"), "--"], &[&program]);
    let check = || tool(&["check", "--json", "--rules", "memory"], &[&file]);
    let first = check();
    assert_eq!(kinds(&json(&first)), set(&["null-pointer"]));
    for _ in 0..9 {
        assert_eq!(check().stdout, first.stdout);
    }
}

#[test]
fn a_damaged_recording_is_never_called_clean() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("true.whydunit");
    let words = ["record", "--quiet", "-o", file.to_str().expect("a path"), "--"];
    assert_eq!(tool(&words, &[Path::new("true")]).status.code(), Some(0));
    assert_eq!(tool(&["check"], &[&file]).status.code(), Some(0));
    let sound = std::fs::read(&file).expect("a recording");
    for part in [2, 4, 5] {
        let mut damaged = sound.clone();
        damaged[sound.len() / 8 * part] ^= 0x10;
        std::fs::write(&file, damaged).expect("a file");
        let checked = tool(&["check"], &[&file]);
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(matches!(checked.status.code(), Some(2 | 3)), "{:?}: {said}", checked.status);
        assert!(said.contains("damaged") || said.contains("diverged"), "{said}");
    }
}

#[test]
fn a_program_that_only_becomes_another_one_is_checked_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "dangling_read.c");
    let file = folder.path().join("env.whydunit");
    let words = ["record", "--quiet", "-o", file.to_str().expect("a path"), "--"];
    tool(&words, &[Path::new("env"), &program]);
    let checked = tool(&["check", "--json"], &[&file]);
    assert!(kinds(&json(&checked)).contains("dangling-pointer"));
    assert_eq!(checked.status.code(), Some(1));
}

#[test]
fn programs_that_a_program_starts_are_checked_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "double_plain.c");
    let script = folder.path().join("script");
    let text = format!("#!/bin/sh\ntrue\n{}\necho done\n", program.display());
    std::fs::write(&script, text).expect("a script");
    let shell = Path::new("/bin/sh");
    let output = tool(&["run", "--json", "--rules", "double-free", "--"], &[shell, &script]);
    let found = kinds(&json(&output));
    assert!(found.contains("double-free"), "{found:?}");
}

#[test]
fn a_rule_can_be_switched_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "double_plain.c");
    let switch = folder.path().join("switch");
    let found = |text: &str| {
        std::fs::write(&switch, text).expect("a file");
        let file = switch.to_str().expect("text");
        let words = ["run", "--json", "--rules", "memory", "--switch", file, "--"];
        kinds(&json(&tool(&words, &[&program]))).contains("double-free")
    };
    assert!(found("+double-free\n"));
    assert!(!found("-double-free\n"));
    assert!(found("-double-free\n+double_free\n"));
}

#[test]
fn a_screened_run_finds_what_lands_outside_of_live_blocks_and_nothing_in_clean_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    for (program, expected) in [
        ("dangling_read.c", &["dangling-pointer"][..]),
        ("dangling_write.c", &["dangling-pointer"]),
        ("dangling_list.c", &["dangling-pointer"]),
        ("overflow_read.c", &["heap-overflow"]),
        ("overflow_write.c", &["heap-overflow"]),
        ("overflow_before.c", &["heap-overflow"]),
        ("overflow_memset.c", &["heap-overflow"]),
        ("double_plain.c", &["double-free"]),
        ("free_interior.c", &["unmatched-free"]),
        ("null_field.c", &["null-pointer"]),
        ("clean_allocators.c", &[]),
        ("clean_containers.cpp", &[]),
        ("clean_strings.c", &[]),
    ] {
        let binary = build(folder.path(), program);
        let output = tool(&SCREENED, &[&binary]);
        let mut found = kinds(&json(&output));
        found.remove("fatal-signal");
        assert_eq!(found, set(expected), "{program}");
    }
}

#[test]
fn guests_that_do_their_worst_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    for (program, expected) in [
        ("wild/metadata.c", "heap-overflow"),
        ("wild/frees.c", "unmatched-free"),
        ("wild/exhausts.c", "null-pointer"),
        ("wild/deep.c", "fatal-signal"),
    ] {
        let binary = build(folder.path(), program);
        let rules = "memory,uninitialised,allocation,regions";
        let output = tool(&["run", "--json", "--rules", rules, "--"], &[&binary]);
        let found = kinds(&json(&output));
        assert!(found.contains(expected), "{program}: {found:?}");
        assert_eq!(output.status.code(), Some(1), "{program}");
    }
}

#[test]
fn children_that_were_forked_are_checked_in_recordings_and_screened_runs_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "forked_dangling.c");
    assert_eq!(kinds(&json(&tool(&SCREENED, &[&program]))), set(&["dangling-pointer"]));
    let file = folder.path().join("run.wd");
    tool(&["record", "-q", "-o", file.to_str().expect("text"), "--"], &[&program]);
    let check = |process: &str| {
        let words = ["check", "--json", "--rules", "memory", "--process", process];
        kinds(&json(&tool(&words, &[&file])))
    };
    assert_eq!(check("0"), set(&[]));
    assert_eq!(check("1"), set(&["dangling-pointer"]));
}

#[test]
fn what_parent_and_child_both_do_is_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "forked_both.c");
    for way in [&["run", "--json", "--rules", "memory", "--"][..], &SCREENED] {
        let report = json(&tool(way, &[&program]));
        let findings = report["findings"].as_array().expect("a list");
        assert_eq!(findings.len(), 1, "{way:?}: {report}");
        let steps = findings[0]["evidence"].as_array().expect("steps");
        let last = steps.last().and_then(|step| step["text"].as_str());
        assert_eq!(last, Some("this happened 2 times, in 2 processes"), "{way:?}");
    }
}

#[test]
fn blocks_of_a_fixed_size_are_screened() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "wild/fixed_pool.c");
    let pool = folder.path().join("pool.txt");
    std::fs::write(&pool, "node_new =64 node_delete\n").expect("a file");
    let mut words = SCREENED.to_vec();
    words.splice(1..1, ["--allocators", pool.to_str().expect("text")]);
    assert_eq!(kinds(&json(&tool(&words, &[&program]))), set(&["dangling-pointer"]));
}

#[test]
fn the_runner_and_the_host_tell_the_same_history_of_random_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "wild/random_calls.c");
    let allocators = folder.path().join("allocators");
    std::fs::write(&allocators, "take give\nnode_take node_give\n").expect("a file");
    let [unusual, all] = with_and_without_ordinary_calls(folder.path());
    for seed in 1..=8 {
        let seed = PathBuf::from(seed.to_string());
        let [runner, host] = [&unusual, &all].map(|rules| {
            let allocators = allocators.to_str().expect("text");
            let words = ["run", "--json", "--allocators", allocators, "--rules", rules, "--"];
            json(&tool(&words, &[&program, &seed]))
        });
        assert_eq!(runner["findings"], host["findings"], "{seed:?}");
        assert_eq!(kinds(&runner), set(&unusual.split(',').collect::<Vec<_>>()), "{seed:?}");
    }
}

/// Rules about unusual calls of allocators; and the same with one that never holds, but has every call told.
fn with_and_without_ordinary_calls(folder: &Path) -> [String; 2] {
    let never = folder.join("never.rule");
    let text = "[never] \"never\"\n    detect <Trace; free r>: Size(r) > 99999999999999\n";
    std::fs::write(&never, text).expect("a file");
    let unusual = "double-free,unmatched-free,mismatched-free,bad-size";
    [unusual.to_owned(), format!("{unusual},{}", never.display())]
}

/// What the C library does with freed blocks when a thread ends is nobody's fault. Where `posix_memalign`
/// stores a block the runner sees; the host does not, and must not take it for another.
#[test]
fn threads_that_allocate_among_signals_and_end_are_clean() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "wild/ending_threads.cpp");
    for rules in with_and_without_ordinary_calls(folder.path()) {
        let output = tool(&["run", "--json", "--rules", &rules, "--"], &[&program]);
        assert_eq!(json(&output)["findings"].as_array().map(Vec::len), Some(0), "{rules}");
        assert_eq!(output.status.code(), Some(0), "{rules}");
    }
}

/// A rule that holds everywhere and one that takes for ever, over a program of some length.
#[test]
fn rules_that_never_end_or_hold_everywhere_are_bounded_and_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = folder.path().join("wild.rule");
    let text = "[everywhere] detect <deref r>: Width(r) > 0\n\
                [forever] detect <Trace; deref r>: exists event(_, malloc, _, a) in Trace such that \
                (exists event(_, malloc, _, b) in Trace such that \
                (exists event(_, malloc, _, c) in Trace such that \
                (Time(a) + Time(b) + Time(c) < 0)))\n";
    std::fs::write(&rules, text).expect("a file");
    let program = build(folder.path(), "wild/many.c");
    let words = ["run", "--json", "--rules", rules.to_str().expect("text"), "--"];
    let output = tool(&words, &[&program]);
    assert_eq!(kinds(&json(&output)), set(&["everywhere"]));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("the rule forever could not be decided"), "{told}");
    assert!(told.contains("it was switched off"), "{told}");
}

/// The host's signal reaches a guest without what was sent along if no signal may wait.
#[test]
fn a_user_without_room_for_waiting_signals_can_check_rules() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "clean_strings.c");
    let limited = "ulimit -i 0; exec \"$0\" run --rules memory -- \"$1\"";
    for _ in 0..8 {
        let mut shell = Command::new("sh");
        let done = shell.args(["-c", limited, TOOL]).arg(&program).output().expect("a shell");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_limited_address_space_is_told_and_got_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "wild/exhausts.c");
    let limited = "ulimit -v 2000000; exec \"$0\" run --json --screen --rules memory -- \"$1\"";
    let mut shell = Command::new("sh");
    let done = shell.args(["-c", limited, TOOL]).arg(&program).output().expect("a shell");
    assert!(kinds(&json(&done)).contains("null-pointer"));
    assert!(String::from_utf8_lossy(&done.stderr).contains("ulimit -v"));
}

/// A rule of a program's own about a number, and the chain of that number.
#[test]
fn the_chain_of_a_number_leads_to_where_it_was_remembered() {
    let folder = tempfile::tempdir().expect("a folder");
    let bugs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bugs");
    let source = bugs.join("stale_value.c");
    let root = std::fs::read_to_string(&source).expect("text");
    let root = root.lines().position(|line| line.contains("ROOT")).expect("a mark") as u64 + 1;
    let program = folder.path().join("stale_value");
    let status = Command::new("gcc").args(["-g", "-o"]).arg(&program).arg(&source).status();
    assert!(status.expect("a compiler").success());
    let rule = bugs.join("stale_value.rule");
    let words = ["run", "--json", "--rules", rule.to_str().expect("text"), "--"];
    let report = json(&tool(&words, &[&program]));
    let found = report["findings"].as_array().expect("a list").iter();
    let finding = found.into_iter().find(|one| one["kind"] == "stale-total").expect("a finding");
    let steps = finding["evidence"].as_array().expect("steps").iter();
    let copied = steps.filter(|step| step["text"] == "v was copied");
    let lines: Vec<u64> = copied.filter_map(|step| step["place"]["line"].as_u64()).collect();
    assert_eq!(lines, [root]);
}

#[test]
fn a_collector_that_forgets_a_mark_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), "wild/marks.c");
    let words = ["run", "--json", "--rules", "collector-marks", "--"];
    assert_eq!(kinds(&json(&tool(&words, &[&program]))), set(&["collector-marks"]));
    let all = Path::new("all");
    assert_eq!(kinds(&json(&tool(&words, &[&program, all]))), set(&[]));
}
