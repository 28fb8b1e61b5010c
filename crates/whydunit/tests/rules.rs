//! The shipped rules on the programs of `tests/programs/rules`: each must give exactly the findings
//! that its lines are marked with, and its corrected twin (`-DFIXED`) none.
//!
//! A mark `// FINDS rule` stands on the line that the finding is reported at; `// LOSES rule` on the
//! line that made what is lost. The head of a program says how it is built (`build:`), which rules
//! are checked (`rules:`) and what functions are called (`as:`). Programs about the heap and about what was
//! never written are screened too (`run --screen`), and must give the same but where a head says
//! `screen: blind`; those in which nothing is wrong must not even be suspicious, but where it says
//! `screen: suspicious`.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const RULES: &str = "memory,uninitialised,allocation,regions";

/// Rules whose findings a screen sees.
const SCREENED: [&str; 6] = [
    "unmatched-free",
    "double-free",
    "dangling-pointer",
    "null-pointer",
    "heap-overflow",
    "uninitialised-read",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Exact,
    Screened,
    /// Only rules about allocations, with the history that the runner keeps and with that of the host.
    Allocations,
    /// Screened, and of what led to a suspicion at most so many ticks followed.
    Window(u64),
}

/// Rules that only unusual calls of allocators can break.
const ALLOCATIONS: &str = "double-free,unmatched-free,mismatched-free,bad-size,overlapping-copy";

/// A rule that never holds, but has every call told.
const NEVER: &str = "[never] \"never\"\n    detect <Trace; free r>: Size(r) > 99999999999999\n";

/// A rule and the line it is about.
type Finding = (String, u64);

struct Program {
    source: PathBuf,
    text: String,
}

impl Program {
    fn head(&self, word: &str) -> Option<&str> {
        let lines = self.text.lines().take_while(|line| line.starts_with("//"));
        lines.filter_map(|line| line.strip_prefix("// ")?.strip_prefix(word)).next().map(str::trim)
    }

    fn expected(&self) -> BTreeSet<Finding> {
        let mut expected = BTreeSet::new();
        for (number, line) in (1..).zip(self.text.lines()) {
            for mark in ["// FINDS ", "// LOSES "] {
                let rule = line.split_once(mark).map(|(_, rule)| rule.trim().to_owned());
                expected.extend(rule.map(|rule| (rule, number)));
            }
        }
        expected
    }

    fn build(&self, folder: &Path, fixed: bool) -> PathBuf {
        let stem = self.source.file_stem().expect("a file").to_string_lossy();
        let binary = folder.join(format!("{stem}{}", if fixed { ".fixed" } else { "" }));
        let cpp = self.source.extension().is_some_and(|extension| extension == "cpp");
        let mut command = Command::new(if cpp { "g++" } else { "gcc" });
        command.args(["-g", "-w"]).args(self.head("build:").unwrap_or_default().split_whitespace());
        if fixed {
            command.arg("-DFIXED");
        }
        let status = command.arg("-o").arg(&binary).arg(&self.source).status().expect("a compiler");
        assert!(status.success(), "{} does not build", self.source.display());
        binary
    }

    fn found(&self, folder: &Path, fixed: bool, way: Way) -> (BTreeSet<Finding>, String) {
        let binary = self.build(folder, fixed);
        let mut command = Command::new(env!("CARGO_BIN_EXE_whydunit"));
        let report = binary.with_extension(if fixed { "fixed.json" } else { "json" });
        command.args(["run", "--json", "--rules", self.head("rules:").unwrap_or(RULES), "-o"]);
        command.arg(&report);
        match way {
            Way::Exact | Way::Allocations => &mut command,
            Way::Screened => command.arg("--screen"),
            Way::Window(ticks) => {
                command.args(["--screen", "--patience", "0", "--window", &ticks.to_string()])
            }
        };
        if let Some(names) = self.head("as:") {
            command.args(["--as", names]);
        }
        let output = command.arg("--").arg(&binary).output().expect("the tool runs");
        let text = std::fs::read_to_string(&report).unwrap_or_else(|_| {
            panic!("{command:?} wrote no report: {}", String::from_utf8_lossy(&output.stderr))
        });
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let findings = report["findings"].as_array().expect("a list");
        let of_rules = findings.iter().filter(|finding| finding["kind"] != "fatal-signal");
        let all = of_rules.flat_map(|finding| self.all_located(finding)).collect();
        (all, format!("{command:?}\n{text}"))
    }

    /// The same of a finding and of the other places at which it was made.
    fn all_located(&self, finding: &Value) -> Vec<Finding> {
        let (rule, line) = self.located(finding);
        let steps = finding["evidence"].as_array().cloned().unwrap_or_default();
        let also = steps.iter().filter(|step| step["role"] == "also");
        let lines = also.filter_map(|step| step["place"]["line"].as_u64());
        [line].into_iter().chain(lines).map(|line| (rule.clone(), line)).collect()
    }

    /// The rule, and the line of this file that the finding is about.
    fn located(&self, finding: &Value) -> Finding {
        let rule = finding["kind"].as_str().expect("a kind").to_owned();
        let own = |place: &Value| {
            let file = place["file"].as_str().map(|file| file.ends_with(&self.name()));
            file.unwrap_or(false).then(|| place["line"].as_u64()).flatten()
        };
        let steps = finding["evidence"].as_array().cloned().unwrap_or_default();
        let made = steps.iter().find_map(|step| {
            let text = step["text"].as_str()?;
            let made = text.starts_with("allocated: ") || text.starts_with("opened: ");
            made.then(|| own(&step["place"])).flatten()
        });
        let lost = rule.contains("leak");
        let line = if lost { made } else { own(&finding["place"]) };
        (rule, line.unwrap_or(0))
    }

    /// Whether a screen is to find what is expected.
    fn is_screened(&self) -> bool {
        let expected = self.expected();
        let seen = |(rule, _): &Finding| SCREENED.contains(&rule.as_str());
        !expected.is_empty() && expected.iter().all(seen) && self.head("screen:").is_none()
    }

    fn name(&self) -> String {
        self.source.file_name().expect("a file").to_string_lossy().into_owned()
    }

    /// What rules find in the program; a crash has the number of its process, and is left out.
    fn told(&self, binary: &Path, rules: &str) -> Vec<Value> {
        let report = binary.with_extension("told");
        let mut command = Command::new(env!("CARGO_BIN_EXE_whydunit"));
        command.args(["run", "--json", "--rules", rules, "-o"]).arg(&report).arg("--").arg(binary);
        command.output().expect("the tool runs");
        let text = std::fs::read_to_string(&report).expect("a report");
        let mut report: Value = serde_json::from_str(&text).expect("JSON");
        let mut findings = std::mem::take(report["findings"].as_array_mut().expect("a list"));
        findings.retain(|finding| finding["kind"] != "fatal-signal");
        findings
    }

    fn compare(&self, folder: &Path) -> Vec<String> {
        let binary = self.build(folder, false);
        let never = binary.with_extension("rule");
        std::fs::write(&never, NEVER).expect("a file");
        let runner = self.told(&binary, ALLOCATIONS);
        let host = self.told(&binary, &format!("{ALLOCATIONS},{}", never.display()));
        let missed = |(rule, _): &Finding| {
            let asked = ALLOCATIONS.split(',').any(|name| name == rule);
            asked && !runner.iter().any(|finding| finding["kind"] == *rule)
        };
        match runner != host || self.expected().iter().any(missed) {
            true => vec![format!("{}: {runner:#?}\n{host:#?}", self.name())],
            false => Vec::new(),
        }
    }

    /// What is wrong with what was found, if anything.
    fn check(&self, folder: &Path, way: Way) -> Vec<String> {
        if way == Way::Allocations {
            return self.compare(folder);
        }
        let mut problems = Vec::new();
        for fixed in [false, true] {
            let expected = if fixed { BTreeSet::new() } else { self.expected() };
            if fixed && self.expected().is_empty() {
                continue;
            }
            let (found, report) = self.found(folder, fixed, way);
            if found != expected {
                let name = self.name();
                let which = if fixed { " -DFIXED" } else { "" };
                problems.push(format!(
                    "{name}{which}: expected {expected:?}, found {found:?}\n{report}"
                ));
            }
        }
        problems
    }
}

fn programs() -> Vec<Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/rules");
    let mut programs: Vec<Program> = std::fs::read_dir(folder)
        .expect("the programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "c" || kind == "cpp"))
        .map(|source| Program { text: std::fs::read_to_string(&source).expect("text"), source })
        .collect();
    programs.sort_by(|one, other| one.source.cmp(&other.source));
    programs
}

fn check_all(way: Way, wanted: impl Fn(&Program) -> bool) {
    judge_all(wanted, |program, folder| program.check(folder, way));
}

/// Judges all programs that are wanted, two at a time.
fn judge_all(
    wanted: impl Fn(&Program) -> bool,
    judge: impl Fn(&Program, &Path) -> Vec<String> + Sync,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let only = std::env::var("RULE_PROGRAM").unwrap_or_default();
    let chosen = |program: &Program| program.name().contains(&only) && wanted(program);
    let all: Vec<Program> = programs().into_iter().filter(chosen).collect();
    let (queue, problems) = (Mutex::new(all.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("not poisoned").next();
                    let Some(program) = next else { return };
                    let found = judge(program, folder.path());
                    problems.lock().expect("not poisoned").extend(found);
                }
            });
        }
    });
    let problems = problems.into_inner().expect("not poisoned");
    assert!(problems.is_empty(), "{} of {}\n{}", problems.len(), all.len(), problems.join("\n\n"));
}

#[test]
fn every_program_gives_exactly_its_findings_and_its_twin_none() {
    check_all(Way::Exact, |_| true);
}

#[test]
fn a_screen_finds_the_same_in_the_heap() {
    check_all(Way::Screened, Program::is_screened);
}

#[test]
fn what_a_short_window_finds_is_so() {
    // From one in which nothing is known to one in which most pointers are made.
    for (ticks, least) in [(64, 50), (4_096, 60)] {
        let (found, all) = (AtomicUsize::new(0), AtomicUsize::new(0));
        judge_all(Program::is_screened, |program, folder| {
            let mut problems = Vec::new();
            for fixed in [false, true] {
                let expected = if fixed { BTreeSet::new() } else { program.expected() };
                let (told, report) = program.found(folder, fixed, Way::Window(ticks));
                found.fetch_add(told.len(), Ordering::Relaxed);
                all.fetch_add(expected.len(), Ordering::Relaxed);
                // Whose block is not known is told by what else is wrong in the same line.
                let instead = program.head("windows:");
                let is_so = |(kind, line): &Finding| {
                    expected.contains(&(kind.clone(), *line))
                        || instead == Some(kind.as_str())
                            && expected.iter().any(|(_, at)| at == line)
                };
                if !told.iter().all(is_so) {
                    problems.push(format!("{}: {told:?} in {ticks}\n{report}", program.name()));
                }
            }
            problems
        });
        let (found, all) = (found.into_inner(), all.into_inner());
        assert!(found >= least, "{found} of {all} in {ticks} ticks");
    }
}

#[test]
fn the_runner_and_the_host_tell_the_same_history_of_blocks() {
    check_all(Way::Allocations, |_| true);
}

#[test]
fn a_screen_suspects_nobody_who_is_innocent() {
    let innocent = |program: &Program| program.head("screen:") != Some("suspicious");
    judge_all(innocent, |program, folder| {
        let binary = program.build(folder, true);
        let mut command = Command::new(env!("CARGO_BIN_EXE_whydunit"));
        let line = ["run", "--screen", "--rules", "memory,uninitialised", "--patience", "0", "--"];
        let output = command.args(line).arg(binary).output().expect("the tool runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let suspicious = said.contains("something is suspicious");
        suspicious.then(|| format!("{}: {said}", program.name())).into_iter().collect()
    });
}

#[test]
fn there_are_enough_programs_of_every_class() {
    let programs = programs();
    let buggy = programs.iter().filter(|program| !program.expected().is_empty()).count();
    assert!(buggy >= 60, "only {buggy}");
    for rule in ["unmatched-free", "double-free", "dangling-pointer", "null-pointer"]
        .into_iter()
        .chain(["heap-overflow", "uninitialised-read"])
    {
        let some = programs.iter().filter(|p| p.expected().iter().any(|(kind, _)| kind == rule));
        assert!(some.count() >= 5, "{rule}");
    }
}
