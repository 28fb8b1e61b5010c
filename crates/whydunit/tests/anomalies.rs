//! `learn`, `anomalies` and `model` over small programs with a bug that breaks no rule. Each says in its head how it is
//! built, which arguments go well, which do not, and on which lines the bug shows.

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A program with its runs.
struct Case {
    name: String,
    folder: TempDir,
    fail: Vec<String>,
    /// Lines on which the bug shows.
    faults: Vec<u64>,
}

fn whydunit(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whydunit"));
    command.args(arguments).current_dir(folder).output().expect("it runs")
}

fn head<'a>(text: &'a str, name: &str) -> &'a str {
    let prefix = format!("// {name}: ");
    text.lines().find_map(|line| line.strip_prefix(prefix.as_str())).unwrap_or_default()
}

impl Case {
    /// Builds a program and lists its runs.
    fn of(source: &Path, options: &[&str]) -> Self {
        let text = std::fs::read_to_string(source).expect("a source");
        let name = source.file_stem().expect("a name").to_string_lossy().into_owned();
        let folder = tempfile::tempdir().expect("a folder");
        let mut gcc = Command::new("gcc");
        gcc.args(["-g", "-w"]).args(options).args(head(&text, "build").split_whitespace());
        gcc.arg("-o").arg(folder.path().join(&name)).arg(source);
        assert!(gcc.status().expect("gcc").success(), "{name}");
        let runs: Vec<&str> = head(&text, "learn").split('|').map(str::trim).collect();
        std::fs::write(folder.path().join("runs"), runs.join("\n")).expect("written");
        let fail = head(&text, "fail").split_whitespace().map(str::to_owned).collect();
        let faults = (1..).zip(text.lines()).filter(|(_, line)| line.contains("FAULT"));
        let faults = faults.map(|(number, _)| number).collect();
        Self { name, folder, fail, faults }
    }

    fn program(&self) -> String {
        format!("./{}", self.name)
    }

    fn learn(&self) {
        let program = self.program();
        let arguments = ["learn", "-o", "model", "--inputs", "runs", "--", &program];
        let output = whydunit(self.folder.path(), &arguments);
        assert!(output.status.success(), "{}: {output:?}", self.name);
    }

    /// The answer about a run.
    fn anomalies(&self, options: &[&str], run: &[String]) -> (Option<i32>, Value) {
        let program = self.program();
        let mut arguments = vec!["anomalies", "model", "--json", "-o", "answer"];
        arguments.extend(options);
        arguments.extend(["--", &program]);
        arguments.extend(run.iter().map(String::as_str));
        let output = whydunit(self.folder.path(), &arguments);
        let answer = std::fs::read(self.folder.path().join("answer")).unwrap_or_default();
        let answer = serde_json::from_slice(&answer).unwrap_or_else(|_| panic!("{output:?}"));
        (output.status.code(), answer)
    }

    /// The rank of the first anomaly on one of the lines where the bug shows.
    fn rank(&self, answer: &Value) -> Option<usize> {
        let findings = answer["findings"].as_array().expect("findings");
        let is_there = |finding: &Value| {
            finding["place"]["line"].as_u64().is_some_and(|line| self.faults.contains(&line))
        };
        findings.iter().position(is_there).map(|at| at + 1)
    }
}

fn sources() -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = ["examples/anomalies", "tests/programs/invariants"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(support::root().join(folder)).expect("a folder"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    sources
}

/// The rank of each bug that is not the first anomaly of its run.
const LATER: [(&str, usize); 2] = [("log", 3), ("refcount", 4)];

#[test]
fn the_references_bugs_are_found() {
    let mut found = Vec::new();
    for source in sources() {
        let case = Case::of(&source, &[]);
        case.learn();
        let (exit, answer) = case.anomalies(&[], &case.fail);
        let rank = case.rank(&answer);
        assert_eq!(exit, Some(1), "{}: {answer:#}", case.name);
        let expected =
            LATER.iter().find(|(name, _)| *name == case.name).map_or(1, |(_, rank)| *rank);
        found.push((case.name, rank, expected));
    }
    assert!(found.len() >= 14, "{found:?}");
    let others: Vec<_> =
        found.iter().filter(|(_, rank, expected)| *rank != Some(*expected)).collect();
    assert!(others.is_empty(), "name, rank, expected: {others:?}");
}

#[test]
fn a_run_that_was_learned_from_has_no_anomalies() {
    for source in sources() {
        let case = Case::of(&source, &[]);
        case.learn();
        let text = std::fs::read_to_string(&source).expect("a source");
        let run = head(&text, "learn").split('|').next().unwrap_or_default();
        let run: Vec<String> = run.split_whitespace().map(str::to_owned).collect();
        let (exit, answer) = case.anomalies(&["--min", "0"], &run);
        assert_eq!(exit, Some(0), "{}: {answer:#}", case.name);
    }
}

#[test]
fn a_model_serves_a_program_that_was_built_anew() {
    let original = support::root().join("examples/anomalies/cache.c");
    let case = Case::of(&original, &[]);
    case.learn();
    // Three lines more before everything, and a function more.
    let text = std::fs::read_to_string(&original).expect("a source");
    let (head, rest) = text.split_once("static int *status;").expect("the variable");
    let more = "int unused(int n) {\n    return n * 3;\n}\n\nstatic int *status;";
    let changed = case.folder.path().join("cache.c");
    std::fs::write(&changed, format!("{head}{more}{rest}")).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-w", "-o"]).arg(case.folder.path().join("cache")).arg(&changed);
    assert!(gcc.status().expect("gcc").success());
    let (exit, answer) = case.anomalies(&["--min", "0"], &["700".into(), "0".into()]);
    assert_eq!((exit, &answer["result"]["new_points"]), (Some(0), &Value::from(0)), "{answer:#}");
    let (exit, answer) = case.anomalies(&[], &case.fail);
    assert_eq!(exit, Some(1), "{answer:#}");
    let line = answer["findings"][0]["place"]["line"].as_u64();
    assert_eq!(line, Some(case.faults[0] + 4), "{answer:#}");
}

#[test]
fn what_cannot_be_used_is_refused_in_one_sentence() {
    let case = Case::of(&support::root().join("examples/anomalies/cache.c"), &[]);
    let other = Case::of(&support::root().join("examples/anomalies/messages.c"), &[]);
    case.learn();
    let folder = case.folder.path();
    let model = std::fs::read(folder.join("model")).expect("a model");
    std::fs::copy(other.folder.path().join("messages"), folder.join("messages")).expect("copied");
    let mut newer = model.clone();
    newer[8] += 1;
    std::fs::write(folder.join("newer"), newer).expect("written");
    std::fs::write(folder.join("cut"), &model[..model.len() / 2]).expect("written");
    std::fs::write(folder.join("text"), "not a model, but long enough to be one").expect("written");
    let run = ["--", "./cache", "400", "0"];
    for (model, program, words) in [
        ("newer", &run[..], "format 2"),
        ("cut", &run[..], "cut off"),
        ("text", &run[..], "is not a model"),
        ("none", &run[..], "cannot read none"),
        ("model", &["--", "./messages", "3", "0"][..], "'cache'"),
        ("model", &["--", "./missing"][..], "missing"),
    ] {
        let output = whydunit(folder, &[&["anomalies", model][..], program].concat());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{model} {program:?}: {text}");
        assert!(text.contains(words), "{model} {program:?}: {text}");
    }
    // Nothing is learned from runs that fail, and the model stays as it was.
    let learned =
        whydunit(folder, &["learn", "-o", "model", "--good", "false", "--", "./cache", "400", "0"]);
    assert_eq!(learned.status.code(), Some(2), "{learned:?}");
    assert_eq!(std::fs::read(folder.join("model")).expect("a model"), model);
}

#[test]
fn models_are_merged_shown_and_compared() {
    let case = Case::of(&support::root().join("examples/anomalies/cache.c"), &[]);
    let folder = case.folder.path();
    for (model, steps) in [("one", "400"), ("two", "700")] {
        let output = whydunit(folder, &["learn", "-o", model, "--", "./cache", steps, "0"]);
        assert!(output.status.success(), "{output:?}");
    }
    // Learned in two steps, and merged from two models: the same.
    let merge = ["model", "merge", "-o", "merged", "one", "two"];
    assert!(whydunit(folder, &merge).status.success());
    assert!(
        whydunit(folder, &["learn", "-o", "one", "--", "./cache", "700", "0"]).status.success()
    );
    let [one, merged] =
        ["one", "merged"].map(|name| std::fs::read(folder.join(name)).expect("a model"));
    assert_eq!(one, merged);
    // From recordings: the same again.
    for (recording, steps) in [("a.rec", "400"), ("b.rec", "700")] {
        let record = ["record", "-o", recording, "--", "./cache", steps, "0"];
        assert!(whydunit(folder, &record).status.success());
    }
    assert!(whydunit(folder, &["learn", "-o", "recorded", "a.rec", "b.rec"]).status.success());
    assert_eq!(std::fs::read(folder.join("recorded")).expect("a model"), merged);
    let shown = whydunit(folder, &["model", "show", "one", "find_free"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.contains("read: 0 or 1"), "{text}");
    assert_eq!(whydunit(folder, &["model", "diff", "one", "merged"]).status.code(), Some(0));
    let info = whydunit(folder, &["model", "info", "--json", "merged"]);
    let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
    assert_eq!(info["result"]["runs"], 2, "{info:#}");
    assert_eq!(whydunit(folder, &["model", "show", "one", "nowhere.c:3"]).status.code(), Some(2));
}
