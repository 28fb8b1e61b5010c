//! What a person reads: one bug is one report on one screen, a crash is told with what it came from, the same
//! each time; leaks by memcheck's classes; SARIF that tools accept.

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TOOL: &str = env!("CARGO_BIN_EXE_whydunit");

fn compile(folder: &Path, source: &Path, options: &[&str]) -> PathBuf {
    let binary = folder.join(source.file_stem().expect("a file"));
    let mut command = Command::new("gcc");
    command.args(["-g", "-w", "-pthread"]).args(options).arg("-o").arg(&binary).arg(source);
    assert!(command.status().expect("a compiler").success(), "{command:?}");
    binary
}

fn example(folder: &Path, name: &str) -> PathBuf {
    compile(folder, &support::root().join("examples").join(name), &["-O0"])
}

fn written(folder: &Path, name: &str, text: &str, options: &[&str]) -> PathBuf {
    let source = folder.join(name);
    std::fs::write(&source, text).expect("a source");
    compile(folder, &source, options)
}

fn tool(words: &[&str], program: &Path) -> Output {
    Command::new(TOOL).args(words).arg("--").arg(program).output().expect("the tool runs")
}

fn report(words: &[&str], program: &Path) -> String {
    String::from_utf8_lossy(&tool(words, program).stderr).into_owned()
}

fn json(words: &[&str], program: &Path) -> Value {
    let output = tool(words, program);
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn findings(report: &Value) -> &[Value] {
    report["findings"].as_array().expect("a list")
}

#[track_caller]
fn assert_fits(report: &str) {
    // A report is what stands between two titles.
    for one in report.split("\nwhydunit: ") {
        assert!(one.lines().count() <= 40, "{} lines:\n{one}", one.lines().count());
    }
    let widest = report.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{widest:?} columns:\n{report}");
}

#[test]
fn a_block_that_180_call_paths_use_is_one_finding() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = example(folder.path(), "reports/prices.c");
    let text = report(&["run"], &program);
    assert_eq!(text.matches("whydunit: ").count(), 1, "{text}");
    assert_fits(&text);
    assert!(text.contains("also at") && text.contains("(letter)"), "{text}");
    assert!(text.contains("this happened 181 times, from 181 call paths"), "{text}");
    assert!(!text.contains("dl-trampoline") && !text.contains("__libc_start"), "{text}");
    let report = json(&["run", "--json"], &program);
    let [finding] = findings(&report) else { panic!("{report:#}") };
    let steps = finding["evidence"].as_array().expect("steps");
    let role = |role: &str| steps.iter().find(|step| step["role"] == role).expect("a step").clone();
    for made in ["allocated", "freed", "copied", "also"] {
        assert!(role(made)["when"]["tick"].is_u64(), "{made} has no moment: {report:#}");
        assert_eq!(role(made)["when"]["thread"], 1);
    }
}

#[test]
fn moments_of_evidence_are_where_it_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = example(folder.path(), "reports/prices.c");
    let recording = folder.path().join("run.wd");
    let mut record = Command::new(TOOL);
    record.args(["record", "-q", "-o"]).arg(&recording).arg("--").arg(&program);
    record.output().expect("recorded");
    let checked = Command::new(TOOL).args(["check", "--json"]).arg(&recording).output();
    let report: Value = serde_json::from_slice(&checked.expect("checked").stdout).expect("JSON");
    let steps = findings(&report)[0]["evidence"].as_array().expect("steps").clone();
    let mut seen = 0;
    for step in steps.iter().filter(|step| step["when"].is_object()) {
        let when = &step["when"];
        let (tick, pc) = (&when["tick"], when["pc"].as_u64().expect("a pc"));
        let moment = format!("@{tick}:{pc:#x}/{}", when["thread"]);
        let words = ["replay", "--json", "--at", &moment];
        let there = Command::new(TOOL).args(words).arg(&recording).output().expect("replayed");
        let error = String::from_utf8_lossy(&there.stderr).into_owned();
        assert!(there.status.success(), "{moment}, {step}: {error}");
        seen += 1;
    }
    assert!(seen >= 4, "{steps:#?}");
}

#[test]
fn an_overflow_and_the_crash_that_it_caused_are_one_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = example(folder.path(), "reports/labels.c");
    let text = report(&["run"], &program);
    assert_eq!(text.matches("whydunit: ").count(), 1, "{text}");
    assert_fits(&text);
    assert!(text.contains("(the text \"0,41,42,\")"), "{text}");
    let (store, end) = (text.find("(write_label)"), text.find("was ended by SIGSEGV"));
    assert!(store.is_some() && store < end, "{text}");
    let report = json(&["run", "--json"], &program);
    let [cause, crash] = findings(&report) else { panic!("{report:#}") };
    assert_eq!((&cause["kind"], &crash["kind"]), (&"heap-overflow".into(), &"fatal-signal".into()));
    assert_eq!(crash["follows_from"], cause["fingerprint"]);
}

#[test]
fn a_null_pointer_is_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = example(folder.path(), "demo/shelf.c");
    let text = report(&["run"], &program);
    assert_eq!(text.matches("whydunit: ").count(), 1, "{text}");
    assert!(text.contains("#0 pages_of(book=0x0)"), "the crash's arguments: {text}");
    assert_fits(&text);
}

/// Whatever is in `examples/bugs` fits on a screen, and ten runs of it say the same.
#[test]
fn reports_are_the_same_each_time_and_fit_on_a_screen() {
    let folder = tempfile::tempdir().expect("a folder");
    let bugs = support::root().join("examples/bugs");
    for entry in std::fs::read_dir(bugs).expect("programs") {
        let source = entry.expect("an entry").path();
        if source.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        let program = compile(folder.path(), &source, &["-O0"]);
        // What the program itself prints is apart.
        let kept = folder.path().join("report");
        let told = || {
            tool(&["run", "-o", &kept.to_string_lossy()], &program);
            std::fs::read_to_string(&kept).expect("a report")
        };
        let first = told();
        assert_fits(&first);
        for _ in 1..10 {
            assert_eq!(told(), first, "{}", source.display());
        }
    }
}

#[test]
fn inlined_calls_stand_in_the_stacks_of_findings() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "#include <stdlib.h>\n\
        static inline __attribute__((always_inline)) int look(int *p) { return *(volatile int *)p; }\n\
        static inline __attribute__((always_inline)) int outer(int *p) { return look(p) + 1; }\n\
        int main(int argc, char **argv) { int *p = malloc(8); *p = argc; free(p); return outer(p); }\n";
    let program = written(folder.path(), "inlined.c", text, &["-O2"]);
    let report = json(&["run", "--json"], &program);
    let finding = findings(&report).iter().find(|one| one["kind"] == "dangling-pointer");
    let finding = finding.unwrap_or_else(|| panic!("{report:#}"));
    let steps = finding["evidence"].as_array().expect("steps").iter();
    let calls = steps.filter(|step| step["role"] == "call");
    let names: Vec<_> = calls.map(|step| step["place"]["function"].as_str()).collect();
    assert_eq!(names, [Some("look"), Some("outer"), Some("main")]);
}

#[test]
fn what_an_allocator_asks_of_any_address_is_set_aside_and_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "#include <stdlib.h>\n#include <stdint.h>\n\
        static unsigned arenas = 3;\n\
        static int address_in_range(void *p) {\n\
            unsigned index = *(volatile unsigned *)(((uintptr_t)p & ~(uintptr_t)63) + 0);\n\
            return index < arenas;\n}\n\
        static int a(void *p) { return address_in_range(p); }\n\
        static int b(void *p) { return address_in_range(p); }\n\
        int main(void) { char *p = malloc(200); p[100] = 1; int n = a(p + 100) + b(p + 100);\n\
            free(p); n += a(p + 100); return n > 5; }\n";
    let program = written(folder.path(), "pools.c", text, &["-O0"]);
    let shown = tool(&["run", "--suppressions", "none"], &program);
    assert_eq!(shown.status.code(), Some(1), "{}", String::from_utf8_lossy(&shown.stderr));
    let output = tool(&["run"], &program);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("set aside as harmless: CPython's allocator asks"), "{said}");
}

#[test]
fn a_program_that_prints_leaks_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "#include <stdio.h>\nint main(void) { printf(\"hello\\n\"); return 0; }\n";
    let program = written(folder.path(), "hello.c", text, &[]);
    for rules in ["leaks", "leaks,descriptors", "leftovers"] {
        let output = tool(&["run", "--rules", rules], &program);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{rules}: {said}");
    }
}

#[test]
fn leaks_are_summed_up_by_default_and_listed_by_line_and_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = example(folder.path(), "reports/basket.c");
    let output = tool(&["run"], &program);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "a summary is no finding: {said}");
    let line = "leaks: 160 bytes in 10 blocks definitely lost (250 in 30 with them), 100 bytes in 1 block \
                possibly lost";
    assert!(said.contains(line), "{said}");
    assert!(said.lines().count() == 1, "{said}");
    let sarif = folder.path().join("leaks.sarif");
    let words = ["run", "--json", "--rules", "leaks", "--sarif", &sarif.to_string_lossy()];
    let report = json(&words, &program);
    assert_eq!(report["result"]["leaks"]["reachable"]["blocks"], 1, "stdout's buffer");
    let kinds: Vec<_> = findings(&report).iter().map(|one| one["kind"].clone()).collect();
    assert_eq!(kinds, ["definite-leak", "possible-loss"]);
    for finding in findings(&report) {
        let file = finding["place"]["file"].as_str().expect("a file");
        assert!(file.ends_with("basket.c"), "{finding:#}");
    }
    let log: Value = serde_json::from_slice(&std::fs::read(&sarif).expect("SARIF")).expect("JSON");
    assert_sarif(&log, 2);
}

#[test]
fn a_descriptor_that_stays_open_is_put_down_to_who_opened_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "#include <fcntl.h>\nstatic int look(const char *f) {\n return open(f, 0);\n}\n\
                int main(void) {\n look(\"/dev/null\");\n look(\"/dev/zero\");\n return 0;\n}\n";
    let program = written(folder.path(), "open.c", text, &["-O0"]);
    let report = json(&["run", "--json", "--rules", "descriptors"], &program);
    let lines: Vec<_> = findings(&report).iter().map(|one| one["place"]["line"].as_u64()).collect();
    assert_eq!(lines, [Some(3), Some(3)], "{report:#}");
    let prints: BTreeSet<_> =
        findings(&report).iter().map(|one| one["fingerprint"].to_string()).collect();
    assert_eq!(prints.len(), 2);
}

/// What the schema of SARIF 2.1.0 asks of what we write.
fn assert_sarif(log: &Value, results: usize) {
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let ids: BTreeSet<_> = rules.iter().map(|rule| rule["id"].as_str().expect("an id")).collect();
    let all = run["results"].as_array().expect("results");
    assert_eq!(all.len(), results, "{log:#}");
    let mut prints = BTreeSet::new();
    for result in all {
        assert!(ids.contains(result["ruleId"].as_str().expect("a rule")), "{result:#}");
        assert!(["note", "warning", "error"].contains(&result["level"].as_str().expect("a level")));
        assert!(result["message"]["text"].is_string());
        let [place] = result["locations"].as_array().expect("locations").as_slice() else {
            panic!("{result:#}")
        };
        let physical = &place["physicalLocation"];
        let uri = physical["artifactLocation"]["uri"].as_str().expect("a file");
        assert!(!uri.is_empty() && !uri.contains(' '), "{uri}");
        assert!(physical["region"]["startLine"].as_u64() > Some(0));
        for print in result["partialFingerprints"].as_object().expect("prints").values() {
            assert!(prints.insert(print.as_str().expect("text").to_owned()), "{print} comes twice");
        }
        for flow in result["codeFlows"].as_array().into_iter().flatten() {
            let threads = flow["threadFlows"].as_array().expect("thread flows");
            assert!(!threads.is_empty());
            for thread in threads {
                let steps = thread["locations"].as_array().expect("locations");
                assert!(!steps.is_empty() && steps.iter().all(|step| step["location"].is_object()));
            }
        }
        for stack in result["stacks"].as_array().into_iter().flatten() {
            assert!(stack["frames"].as_array().is_some_and(|frames| !frames.is_empty()));
        }
    }
}

fn prints(path: &Path) -> Vec<String> {
    let log: Value = serde_json::from_slice(&std::fs::read(path).expect("SARIF")).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("results").clone();
    results.iter().map(|one| one["partialFingerprints"].to_string()).collect()
}

#[test]
fn sarif_has_chains_and_fingerprints_that_outlive_folders_and_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.sarif");
    let path = out.to_string_lossy().into_owned();
    let source = support::root().join("examples/reports/prices.c");
    let program = compile(folder.path(), &source, &["-O0"]);
    tool(&["run", "--sarif", &path], &program);
    let log: Value = serde_json::from_slice(&std::fs::read(&out).expect("SARIF")).expect("JSON");
    assert_sarif(&log, 1);
    assert!(log["runs"][0]["results"][0]["codeFlows"].is_array(), "{log:#}");
    let before = prints(&out);
    // The same program in another folder, all lines further down, called from elsewhere first.
    let text = std::fs::read_to_string(&source).expect("a source");
    let text = format!("// moved\n\n\n{text}").replace("bread() + milk()", "milk() + bread()");
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    let moved = written(&elsewhere, "prices.c", &text, &["-O0"]);
    tool(&["run", "--sarif", &path], &moved);
    assert_eq!(prints(&out), before);
    // A crash, by `run` and by `why`.
    let labels = example(folder.path(), "reports/labels.c");
    tool(&["run", "--sarif", &path], &labels);
    let log: Value = serde_json::from_slice(&std::fs::read(&out).expect("SARIF")).expect("JSON");
    assert_sarif(&log, 2);
    tool(&["why", "--sarif", &path], &labels);
    assert_eq!(prints(&out).len(), 1);
}

/// Programs with linked structures, drawn at random: blocks are lost as memcheck says.
#[test]
fn leaks_have_the_classes_that_memcheck_gives_them() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: there is no valgrind");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 1..=8 {
        let name = format!("graph{seed}.c");
        let program = written(folder.path(), &name, &graph(seed), &["-O0"]);
        let report = json(&["run", "--json"], &program);
        let leaks = &report["result"]["leaks"];
        let command =
            ["--leak-check=full", "--show-leak-kinds=all", "--leak-check-heuristics=none"];
        let memcheck = Command::new("valgrind").args(command).arg(&program).output();
        let told = String::from_utf8_lossy(&memcheck.expect("valgrind").stderr).into_owned();
        let classes = [
            ("definite", "definitely lost"),
            ("indirect", "indirectly lost"),
            ("possible", "possibly lost"),
            ("reachable", "still reachable"),
        ];
        for (ours, theirs) in classes {
            let line = told.lines().find_map(|line| line.split_once(&format!("{theirs}: ")));
            let numbers: Vec<u64> = line.map_or_else(Vec::new, |(_, rest)| {
                let words = rest.split_whitespace().map(|word| word.replace(',', ""));
                words.filter_map(|word| word.parse().ok()).collect()
            });
            let expected = if numbers.is_empty() { vec![0, 0] } else { numbers };
            let own = [&leaks[ours]["bytes"], &leaks[ours]["blocks"]].map(Value::as_u64);
            assert_eq!(
                own,
                [Some(expected[0]), Some(expected[1])],
                "{theirs}, {name}\n{told}\n{leaks}"
            );
        }
    }
}

/// Twenty blocks that point to each other, some to the middles, some held by variables.
fn graph(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut text = String::from(
        "#include <stdlib.h>\n#include <string.h>\n#define N 20\n\
         static char **held[4];\nstatic __thread char **own;\n\
         static void build(void) {\n    char **node[N];\n",
    );
    for block in 0..20 {
        // Of at least four words, and of every length in bytes.
        let size = 32 + draw(90);
        text += &format!("    node[{block}] = malloc({size}); memset(node[{block}], 0, {size});\n");
    }
    for block in 0..20 {
        for word in 0..4 {
            if draw(3) == 0 {
                let (to, into) = (draw(20), if draw(3) == 0 { 1 + draw(3) } else { 0 });
                text += &format!("    node[{block}][{word}] = (char *)(node[{to}] + {into});\n");
            }
        }
    }
    for held in 0..4 {
        let (to, into) = (draw(20), if draw(2) == 0 { 2 } else { 0 });
        text += &format!("    held[{held}] = node[{to}] + {into};\n");
    }
    text += &format!("    own = node[{}];\n    free(node[{}]);\n", draw(20), draw(20));
    text + "}\nint main(void) { build(); return 0; }\n"
}
