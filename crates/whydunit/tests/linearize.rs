//! `whydunit linearize` from outside: exit codes, text and JSON.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/linearize")
}

fn linearize(arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whydunit"));
    command.arg("linearize").args(arguments).arg(file).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_exit_code_tells_the_verdict() {
    let bad = std::env::temp_dir().join(format!("whydunit-bad-{}.lin", std::process::id()));
    std::fs::write(&bad, "int a;\nOp() 1 b = 1;\n").unwrap();
    let rows = [
        (examples().join("treiber_stack.lin"), 0, "proved"),
        (examples().join("mutants/treiber_plain_pop.lin"), 1, "refuted"),
        (bad.clone(), 2, "unknown variable `b`"),
        (examples().join("herlihy_wing_queue.lin"), 3, "no counterexample up to 3 operations"),
    ];
    for (file, code, part) in rows {
        let output = linearize(&["--operations", "3"], &file);
        assert_eq!(output.status.code(), Some(code), "{}", file.display());
        assert!(text(&output).contains(part), "{part:?} is missing from\n{}", text(&output));
    }
    assert_eq!(linearize(&[], Path::new("/no/such/file.lin")).status.code(), Some(2));
    std::fs::remove_file(bad).unwrap();
}

#[test]
fn json_carries_verdict_history_obstacles_and_errors() {
    let json = |file: &str| -> serde_json::Value {
        let output = linearize(&["--json", "--operations", "2"], &examples().join(file));
        let answer: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
        answer["result"].clone()
    };
    assert_eq!(json("rdcss.lin")[0]["verdict"], "proved");
    let refuted = json("mutants/rdcss_no_descriptor.lin");
    assert_eq!(refuted[0]["verdict"], "refuted");
    assert_eq!(refuted[0]["history"]["calls"].as_array().unwrap().len(), 2);
    assert!(refuted[0]["history"]["steps"][0]["text"].is_string());
    let open = json("herlihy_wing_queue.lin");
    assert_eq!(open[0]["verdict"], "not proved");
    assert_eq!(open[0]["searched"]["operations"], 2);
    assert!(!open[0]["obstacles"].as_array().unwrap().is_empty());
}

#[test]
fn a_refuted_specification_is_a_finding_at_its_line() {
    let file = examples().join("mutants/rdcss_no_descriptor.lin");
    let of = |form: &str, file: &Path| -> serde_json::Value {
        let output = linearize(&[form, "--operations", "2"], file);
        serde_json::from_str(&text(&output)).unwrap()
    };
    let finding = of("--json", &file)["findings"][0].clone();
    assert_eq!(
        (&finding["kind"], &finding["confidence"]),
        (&"not-linearizable".into(), &"certain".into())
    );
    let line = finding["place"]["line"].as_u64().unwrap();
    let written = std::fs::read_to_string(&file).unwrap();
    let step = finding["evidence"].as_array().unwrap().last().unwrap().clone();
    let told = step["text"].as_str().unwrap().rsplit(": ").next().unwrap().to_owned();
    let first = told.split_whitespace().next().unwrap();
    assert!(written.lines().nth(line as usize - 1).unwrap().contains(first), "{told} at {line}");
    let sarif = of("--sarif", &file);
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "not-linearizable");
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"].as_u64(), Some(line));
    let proved = of("--sarif", &examples().join("rdcss.lin"));
    assert_eq!(proved["runs"][0]["results"].as_array().unwrap().len(), 0);
}

/// The timeline, as a reader sees it. The duration is the only thing that may differ.
#[test]
fn the_timeline_reads_as_it_should() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/treiber_plain_pop.txt");
    let file = examples().join("mutants/treiber_plain_pop.lin");
    let shown = text(&linearize(&[], &file));
    let (_, body) = shown.split_once('\n').unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&golden, body).unwrap();
    }
    assert_eq!(body, std::fs::read_to_string(golden).unwrap(), "BLESS=1 writes it anew");
}

#[test]
fn pairs_can_be_shown() {
    let output = linearize(&["--show", "pairs"], &examples().join("ms_queue.lin"));
    let shown = text(&output);
    for part in
        ["abcd · abcd              not orderable", "abcd · f                 orderable, reversible"]
    {
        assert!(shown.contains(part), "{part:?} is missing from\n{shown}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let file = examples().join("mutants/treiber_plain_pop.lin");
    let shell = format!(
        "{} linearize --show pairs {} | head -n 1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_whydunit"),
        file.display()
    );
    let output = Command::new("bash").args(["-c", &shell]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.is_empty());
}
