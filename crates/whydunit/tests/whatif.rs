//! `whydunit whatif`: exit codes, answers as text and as data, and diversions held against live runs with the same patch.

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::Output;
use support::{errors, run, text, tool};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int table[4] = {4, 0, 2, 1};
static int share(int whole, int index) {
    if (index > 3)
        return -1;
    return whole / table[index];
}
int main(void) {
    char text[4096];
    setvbuf(stdout, text, _IOFBF, sizeof text);
    int sum = 0, first = 0;
    for (int i = first; i < 4; i++) {
        if (i % 2 == 1 && sum > 0)
            sum += share(100, i);
        printf("%d %d\n", i, sum);
    }
    if (sum < 50)
        return 7;
    return 0;
}
"#;

/// A recording of the program, which divides by zero.
struct Recorded {
    folder: tempfile::TempDir,
}

impl Recorded {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("share.c");
        std::fs::write(&source, PROGRAM.replace("sum = 0", "sum = 1")).expect("written");
        let program = folder.path().join("share");
        let built = std::process::Command::new("gcc")
            .args(["-g", "-O0", "-o"])
            .args([&program, &source])
            .status();
        assert!(built.expect("gcc runs").success());
        let recorded = Self { folder };
        let output = tool(&["record", "-q", "-o"])
            .args([recorded.file("share.whydunit"), "--".into(), recorded.file("share")])
            .output()
            .expect("the tool");
        assert!(recorded.file("share.whydunit").exists(), "{}", errors(&output));
        recorded
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn whatif(&self, arguments: &[&str]) -> Output {
        let recording = self.file("share.whydunit");
        tool(&["whatif"]).args(arguments).arg(recording).output().expect("the tool")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.whatif(&[arguments, &["--json"]].concat());
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((&told["tool"], &told["command"]), (&"whydunit".into(), &"whatif".into()));
        told["result"].clone()
    }
}

#[test]
fn the_exit_code_tells_whether_the_failure_is_gone() {
    let recorded = Recorded::new();
    let check = |arguments: &[&str], code: i32, parts: &[&str]| {
        let output = recorded.whatif(arguments);
        assert_eq!(errors(&output), "", "{arguments:?}");
        support::assert_in_order(&text(&output), parts);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}", text(&output));
    };
    let fails = "recorded: SIGFPE ends it";
    // The second of the two parts of the condition decides.
    let parts = ["the decision at share.c:16#2 goes the other way", fails, "it exits with 0"];
    check(&["--switch", "share.c:16#2"], 0, &parts);
    check(&["--suppress", "share.c:18#1"], 1, &["share.c:18#1 is left out", fails, "same way"]);
    check(&["--set", "index=0", "--at", "share.c:7#1"], 0, &["it does not fail", "1 26"]);
    check(&["--set", "sum=-200", "--at", "share.c:15#1"], 3, &["it exits with 7", "another way"]);
    check(&["--suppress", "share#1"], 0, &["the call share#1 is left out and gives 0"]);
    let searched = recorded.whatif(&["--search", "--budget", "60"]);
    let found = !text(&searched).starts_with("no decision makes the failure go away");
    assert_eq!(searched.status.code(), Some(i32::from(!found)), "{}", text(&searched));
    assert!(text(&searched).contains(" tried: "), "{}", text(&searched));
}

#[test]
fn a_diversion_does_what_a_live_run_with_the_same_patch_does() {
    let recorded = Recorded::new();
    for (place, execution) in [("share.c:7", 1), ("share.c:15", 1), ("share.c:15", 2)] {
        let told = recorded.json(&["--switch", &format!("{place}#{execution}")]);
        let pc = told["pc"].as_u64().expect("an address");
        let patch = format!("{pc:#x}#{execution}: flip");
        let live = tool(&["run", "--exit-code=guest", "--patch", &patch, "--"])
            .arg(recorded.file("share"))
            .output()
            .expect("the tool");
        assert_eq!(told["output"][0].as_str(), Some(text(&live).as_str()), "{patch}");
        let code = live.status.code().map(|code| format!("it exits with {code}"));
        assert_eq!(told["end"]["words"].as_str(), code.as_deref(), "{patch}");
    }
}

#[test]
fn what_cannot_be_altered_is_refused_with_the_reason() {
    let recorded = Recorded::new();
    let rows: [(&[&str], &str); 8] = [
        (&[], "required"),
        (&["--set", "sum=1"], "--at"),
        (&["--set", "sum", "--at", "main"], "'sum' is not EXPRESSION=VALUE"),
        (&["--set", "sum=x", "--at", "share.c:15#1"], "'x' is not a value"),
        (&["--switch", "share.c:9"], "nothing is decided at share.c:9"),
        (&["--switch", "main"], "say the line of the decision"),
        (&["--switch", "share.c:7#5"], "share.c:7 was executed once"),
        (&["--suppress", "share.c:7"], "turn it around with --switch"),
    ];
    for (arguments, reason) in rows {
        let output = recorded.whatif(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
        assert!(errors(&output).contains(reason), "{arguments:?}: {}", errors(&output));
    }
    assert!(Path::new(&recorded.file("share.whydunit")).exists());
    assert_eq!(run(&["whatif", "--search", "/nowhere"]).status.code(), Some(2));
}
