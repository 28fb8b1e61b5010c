//! `whydunit correlate` from outside: exit codes, formats, accepted findings, the database.

use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../correlate/tests/programs").join(name)
}

/// Thresholds for programs of a dozen functions.
const SMALL: [&str; 4] = ["--min-support", "5", "--min-confidence", "0.6"];

fn run(source: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whydunit"));
    command.arg("correlate").arg(source).args(SMALL).args(arguments);
    command.output().expect("the tool starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

#[test]
fn the_exit_code_tells_findings_from_none_from_bad_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let nothing = folder.path().join("nothing");
    std::fs::create_dir(&nothing).unwrap();
    assert_eq!(run(&program("rx_bytes.c"), &[]).status.code(), Some(1));
    assert_eq!(run(&program("excused.c"), &[]).status.code(), Some(0));
    for (source, arguments, expected) in [
        (nothing.clone(), &[][..], "no C or C++ source file"),
        (nothing.join("missing"), &[][..], "No such file"),
        (program("rx_bytes.c"), &["--min-confidence", "7"][..], "between 0 and 1"),
        (program("rx_bytes.c"), &["--baseline", "/dev/null"][..], "/dev/null"),
        (program("rx_bytes.c"), &["--explain", "nonsense"][..], "is no rule"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whydunit"));
        let output = command.arg("correlate").arg(source).args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

/// The worked example of the page prints what the page says.
#[test]
fn the_page_shows_what_is_printed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/correlate.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, rest) = page.split_once("$ whydunit correlate rx_bytes.c ").expect("an example");
    let (arguments, rest) = rest.split_once('\n').expect("its output");
    let (shown, _) = rest.split_once("```").expect("its end");
    let folder = program("rx_bytes.c");
    let output = Command::new(env!("CARGO_BIN_EXE_whydunit"))
        .args(["correlate", "rx_bytes.c"])
        .args(arguments.split_whitespace())
        .current_dir(folder.parent().expect("a folder"))
        .output()
        .expect("the tool starts");
    assert_eq!(text(&output), shown);
}

#[test]
fn figures_are_tables_or_data() {
    let folder = program("");
    let shown = text(&run(&folder, &["--distribution"]));
    assert!(shown.contains("Variables by the number of their peers"), "{shown}");
    let data = json(&run(&folder, &["--distribution", "--json"]));
    assert!(data["result"]["distribution"]["pairs"].as_u64() > Some(0), "{data}");
    let data = json(&run(&folder, &["--sensitivity", "--json"]));
    assert_eq!(data["result"]["sensitivity"].as_array().map(Vec::len), Some(18));
}

#[test]
fn json_and_sarif_carry_the_same_finding() {
    let report = json(&run(&program("rx_bytes.c"), &["--json"]));
    let finding = &report["findings"][0];
    assert_eq!(finding["place"]["function"], "jumbo_rx");
    assert_eq!(report["result"]["summary"]["accesses"]["dropped"], 0);
    let log = json(&run(&program("rx_bytes.c"), &["--sarif"]));
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["message"]["text"], finding["title"]);
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], finding["place"]["line"]);
}

#[test]
fn a_baseline_leaves_only_what_is_new() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("rx.c");
    let baseline = folder.path().join("baseline.json");
    let before = std::fs::read_to_string(program("rx_bytes.c")).unwrap();
    std::fs::write(&source, &before).unwrap();
    std::fs::write(&baseline, text(&run(&source, &["--json"]))).unwrap();
    let shown = baseline.to_str().expect("UTF-8");
    let moved = format!("/* a line more */\n{before}");
    std::fs::write(&source, &moved).unwrap();
    assert_eq!(run(&source, &["--baseline", shown]).status.code(), Some(0));
    let new = "void burst_rx(struct net_stats *s, int n) { s->rx_bytes += n; }\n";
    std::fs::write(&source, format!("{moved}{new}")).unwrap();
    let output = run(&source, &["--baseline", shown, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let findings = json(&output)["findings"].as_array().cloned().unwrap_or_default();
    let functions: Vec<_> = findings.iter().map(|it| it["place"]["function"].clone()).collect();
    assert_eq!(functions, ["burst_rx"]);
    // An update that is deleted is news, whatever is left of its rule.
    std::fs::write(&source, before.replacen("s->rx_packets++;", ";", 1)).unwrap();
    let output = run(&source, &["--baseline", shown, "--json"]);
    let title = json(&output)["findings"][0]["title"].to_string();
    assert!(title.contains("no longer updates net_stats::rx_packets"), "{title}");
}

#[test]
fn a_file_entry_silences_one_finding() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("accepted");
    let source = program("rx_bytes.c");
    let entry = format!("{} jumbo_rx net_stats::rx_packets counted in hardware", source.display());
    std::fs::write(&list, entry).unwrap();
    let output = run(&source, &["--suppressions", list.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("1 findings silenced"), "{}", text(&output));
}

#[test]
fn explain_shows_both_lines_side_by_side() {
    let rule = "write(net_stats::rx_bytes) => write(net_stats::rx_packets)";
    let output = run(&program("rx_bytes.c"), &["--explain", rule]);
    let shown = text(&output);
    assert!(
        shown.contains("s->rx_bytes += f->len;") && shown.contains("s->rx_packets++;"),
        "{shown}"
    );
    let violators = shown.split("Violators").nth(1).expect("a list of violators");
    assert!(violators.contains("jumbo_rx") && violators.contains("| —"), "{violators}");
}

#[test]
fn explain_as_json_has_every_site() {
    let rule = "write(net_stats::rx_bytes) => write(net_stats::rx_packets)";
    let output = run(&program("rx_bytes.c"), &["--explain", rule, "--json"]);
    let details = &json(&output)["result"];
    assert_eq!(details["rule"]["rule"], rule);
    assert_eq!(details["supporters"].as_array().map(Vec::len), Some(6));
    let violators = details["violators"].as_array().expect("a list");
    assert_eq!(violators.len(), 1);
    assert_eq!(violators[0]["function"], "jumbo_rx");
    assert_eq!(violators[0]["left"]["line"], 26);
    assert!(violators[0]["right"].is_null(), "{violators:?}");
}

#[test]
fn databases_of_two_trees_are_merged_and_stable() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rules.db");
    let store = |source: &str, name: &str| {
        let shown = path.to_str().expect("UTF-8");
        run(&program(source), &["--database", shown, "--tree-name", name]);
        std::fs::read_to_string(&path).expect("a database")
    };
    store("rx_bytes.c", "net");
    let both = store("colours.c", "video");
    assert!(both.contains("net_stats::rx_bytes") && both.contains("screen::red_msb"));
    assert_eq!(store("rx_bytes.c", "net"), both, "the same run again changes nothing");
    std::fs::write(&path, "not a database").unwrap();
    let output = run(&program("duplex.c"), &["--database", path.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(2));
}

/// Root may read everything, so as root the tool is started as another user.
#[test]
fn what_may_not_be_read_is_named_and_passed_over() {
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    };
    std::fs::create_dir_all(at("tree/closed")).unwrap();
    std::fs::copy(program("rx_bytes.c"), at("tree/rx_bytes.c")).unwrap();
    std::fs::copy(program("duplex.c"), at("tree/secret.c")).unwrap();
    std::fs::copy(program("colours.c"), at("tree/closed/colours.c")).unwrap();
    // The build's folder may itself be out of reach for others.
    let tool = at("whydunit");
    // By another process: a child that another test starts while this one writes the file would hold it
    // open, and it could not be executed.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_whydunit")).arg(&tool).status();
    assert!(copied.expect("cp").success());
    allow(folder.path(), 0o755);
    allow(&at("tree/secret.c"), 0);
    allow(&at("tree/closed"), 0);
    let mut command = Command::new(&tool);
    command.arg("correlate").arg(at("tree")).args(SMALL).arg("--json");
    if std::fs::metadata("/proc/self").expect("Linux").uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().expect("the tool starts");
    allow(&at("tree/closed"), 0o755);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&output);
    let skipped = report["result"]["skipped"].as_array().expect("a list");
    let reason = |name: &str| {
        let named = |it: &&Value| it["path"].as_str().is_some_and(|path| path.ends_with(name));
        skipped.iter().find(named).map(|it| it["reason"].to_string()).unwrap_or_default()
    };
    assert!(reason("tree/closed").contains("Permission denied"), "{skipped:?}");
    assert!(reason("secret.c").contains("Permission denied"), "{skipped:?}");
    assert_eq!(skipped.len(), 2, "{skipped:?}");
    assert_eq!(report["findings"][0]["place"]["function"], "jumbo_rx");
}

#[test]
fn the_report_goes_to_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.json");
    let output = run(&program("rx_bytes.c"), &["--json", "-o", path.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = std::fs::read_to_string(path).expect("the report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["command"], "correlate");
}
