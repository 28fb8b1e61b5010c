//! Variables of every kind of storage under a default `run`: accesses outside of them, after their function has
//! returned and after their block was left are found, with their name; accesses inside are not. The program is
//! `tests/programs/variables/cases.c`.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Bytes of the small and of the large ones.
const SIZES: [(&str, i64); 2] = [("small", 10), ("large", 40)];

/// One way to run the program.
struct Case {
    optimised: bool,
    storage: &'static str,
    size: &'static str,
    form: &'static str,
    deed: &'static str,
    index: i64,
    /// Bytes past the end, or before the beginning if negative; nothing if there is nothing wrong.
    distance: Option<i64>,
}

impl Case {
    fn words(&self) -> Vec<String> {
        let words = [self.storage, self.size, self.form, self.deed];
        words.into_iter().map(str::to_owned).chain([self.index.to_string()]).collect()
    }

    /// Whether nobody can tell, and why: docs/rules.md.
    fn is_blind(&self) -> bool {
        match self.storage {
            // gcc's optimised code for these works the rounded size out in a way that is not recognised.
            "array" => self.optimised && self.distance == Some(1),
            // An index may be one into another array, from which a constant was taken.
            "stack" => self.optimised && self.form == "direct",
            // Where an optimised block ends is nowhere to be read.
            "scope" => self.optimised,
            _ => false,
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for optimised in [false, true] {
        for storage in ["stack", "room", "array", "static", "own"] {
            for (size, bytes) in SIZES {
                for form in ["direct", "passed"] {
                    let places = [(bytes, Some(1)), (bytes + 63, Some(64)), (-1, Some(-1))];
                    for (index, distance) in places.into_iter().chain([(bytes - 1, None)]) {
                        let deed = if cases.len() % 2 == 0 { "read" } else { "write" };
                        cases.push(Case { optimised, storage, size, form, deed, index, distance });
                    }
                }
            }
        }
        for storage in ["scope", "return"] {
            for (index, distance) in [(1, Some(0)), (0, None)] {
                let (size, form, deed) = ("large", "passed", "write");
                cases.push(Case { optimised, storage, size, form, deed, index, distance });
            }
        }
    }
    cases
}

fn build(folder: &Path, option: &str) -> PathBuf {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/variables/cases.c");
    let binary = folder.join(format!("cases{option}"));
    let mut command = Command::new("gcc");
    command.args(["-g", "-w", option, "-fno-stack-protector", "-o"]).arg(&binary).arg(source);
    assert!(command.status().expect("gcc").success());
    binary
}

fn run(options: &[&str], binary: &Path, words: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whydunit"));
    command.arg("run").args(options).arg("--").arg(binary).args(words);
    command.output().expect("the tool runs")
}

/// Findings about variables: their kinds, and what their first sentences say.
fn found(folder: &Path, binary: &Path, words: &[String]) -> (Vec<(String, String)>, Value) {
    let file = folder.join("report.json");
    let output = run(&["--json", "-o", file.to_str().expect("text")], binary, words);
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|_| {
        panic!("{words:?}: no report: {}", String::from_utf8_lossy(&output.stderr))
    });
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let said = |finding: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&finding["kind"]), text(&finding["evidence"][0]["text"]))
    };
    (findings.iter().map(said).collect(), report["result"]["checked"].clone())
}

#[test]
fn accesses_outside_of_variables_are_found_and_those_inside_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let binaries = [build(folder.path(), "-O0"), build(folder.path(), "-O2")];
    let mut wrong = Vec::new();
    for case in cases() {
        let binary = &binaries[usize::from(case.optimised)];
        let (findings, checked) = found(folder.path(), binary, &case.words());
        assert_eq!(checked["whole"], true, "so short a run is followed as a whole: {checked}");
        let kind = match case.storage {
            "static" | "own" => "global-overflow",
            "scope" => "use-after-scope",
            "return" => "use-after-return",
            _ => "stack-overflow",
        };
        let hit = findings.iter().find(|(found, _)| found == kind);
        let fine = match (case.distance, hit) {
            (None, _) => findings.is_empty(),
            (Some(_), None) => case.is_blind(),
            (Some(_), Some((_, said))) => is_named(&case, said),
        };
        if !fine {
            wrong.push(format!("{} {}: {findings:?}", binary.display(), case.words().join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a sentence names the variable and says how far outside of it an access is.
fn is_named(case: &Case, said: &str) -> bool {
    let (name, line) = match (case.storage, case.size) {
        ("static", "small") => ("`static_small`, char[10], cases.c:", true),
        ("static", _) => ("`static_large`, char[40], cases.c:", true),
        ("own", "small") => ("`own_small`, char[10], cases.c:", true),
        ("own", _) => ("`own_large`, char[40], cases.c:", true),
        ("stack", "small") => ("`array`, char[10], cases.c:", true),
        ("array", _) if case.optimised => ("made on the stack", false),
        ("room" | "array", "small") => ("room for 10 bytes that was made on the stack", false),
        ("room" | "array", _) => ("room for 40 bytes that was made on the stack", false),
        // In optimised code a frame may be all that is known.
        _ if case.optimised => return true,
        _ => ("`array`, char[40], cases.c:", true),
    };
    let far = match case.distance {
        Some(64) if line => "63 bytes past the end of ",
        Some(1) if line => "right behind ",
        Some(-1) if line => "1 byte before ",
        _ => "",
    };
    said.contains(name) && said.contains(far)
}

#[test]
fn what_was_checked_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = build(folder.path(), "-O0");
    let words = "static small direct read 0".split(' ').map(str::to_owned).collect::<Vec<_>>();
    let said = |options: &[&str]| {
        let output = run(options, &binary, &words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.lines().last().unwrap_or_default().to_owned()
    };
    assert!(!said(&[]).contains("checked:"), "nobody asked");
    let whole = said(&["-v"]);
    assert!(
        whole.contains("checked: every one of ") && whole.contains("stack-overflow"),
        "{whole}"
    );
    let part = said(&["-v", "--follow", "1000"]);
    assert!(part.contains("checked: the first ") && part.contains("the rest: "), "{part}");
    assert!(part.contains("stack-overflow, use-after-return"), "{part}");
}

#[test]
fn a_function_that_does_not_exist_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = build(folder.path(), "-O0");
    let words = "static small direct read 0".split(' ').map(str::to_owned).collect::<Vec<_>>();
    let rules = ["--rules", "leak-in-transaction", "--as", "transaction=no_such_function"];
    let output = run(&rules, &binary, &words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no function is called `no_such_function`"), "{said}");
    assert_eq!(output.status.code(), Some(3), "not decided");
    let rules = ["--rules", "leak-in-transaction", "--as", "transaction=pass"];
    assert_eq!(run(&rules, &binary, &words).status.code(), Some(0));
    let unused = run(&["--rules", "memory", "--as", "transaction=pass"], &binary, &words);
    assert_eq!(unused.status.code(), Some(2));
}
