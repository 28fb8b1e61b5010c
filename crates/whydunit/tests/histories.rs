//! `races --linearize`: the calls of a recorded program against a specification.

mod support;

use std::path::{Path, PathBuf};
use std::process::Output;

fn example(name: &str) -> PathBuf {
    support::root().join("examples/races").join(name)
}

fn build(name: &str, flags: &[&str]) -> PathBuf {
    let flags = [&["-g", "-O1", "-fno-inline", "-pthread"], flags].concat();
    support::build_file(&example("tray.c"), name, &flags)
}

fn judge(program: &Path, maps: &[&str]) -> Output {
    let mut command = support::tool(&["races", "--json", "--linearize"]);
    command.arg(example("tray.lin"));
    for map in maps {
        command.args(["--map", map]);
    }
    command.arg("--").arg(program).output().expect("whydunit")
}

#[test]
fn a_plate_that_two_waiters_have_is_explained_by_no_order() {
    let program = build("tray", &[]);
    for maps in [
        ["Put=tray_put", "Take=tray_take"],
        ["Put=tray_put(object, plate)", "Take=tray_take(object)"],
    ] {
        let output = judge(&program, &maps);
        assert_eq!(output.status.code(), Some(1), "{maps:?}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let finding = &answer["findings"][0];
        assert_eq!(finding["kind"], "not-linearizable");
        let title = finding["title"].as_str().expect("a title");
        assert!(title.contains("Take() of thread 2 returned 3"), "{title}");
        assert_eq!(answer["result"]["calls"], 5);
        assert_eq!(answer["result"]["objects"], 1);
    }
}

#[test]
fn a_tray_with_a_lock_is_explained() {
    let output = judge(&build("tray_fixed", &["-DFIXED"]), &["Put=tray_put", "Take=tray_take"]);
    assert_eq!(output.status.code(), Some(0), "{}", support::errors(&output));
}

#[test]
fn what_does_not_fit_is_refused_with_a_reason() {
    let program = build("tray_refused", &[]);
    for (maps, words) in [
        (["Put=tray_put", "Grab=tray_take"], "no operation 'Grab'; it has Put, Take"),
        (["Put=tray_putt", "Take=tray_take"], "did you mean"),
        (["Put=main", "Take=tray_take"], "what each is"),
        (["Put", "Take=tray_take"], "expected OPERATION=FUNCTION"),
    ] {
        let output = judge(&program, &maps);
        let errors = support::errors(&output);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
}
