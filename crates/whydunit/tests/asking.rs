//! Values by name, outputs, and places that were not executed: rows of what is asked, and which lines the
//! answer must and must not have. The programs are in tests/programs/asking; a comment at the end of a line
//! there names it.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs are built.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("asking");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/asking").join(name)
}

/// Builds a program; at another level of optimisation under another name.
fn build(name: &str, level: &str) -> PathBuf {
    let program = folder().join(format!("{name}{level}"));
    let mut command = match name.ends_with(".rs") {
        true => Command::new("rustc"),
        false => Command::new("gcc"),
    };
    if !name.ends_with(".rs") {
        command.arg(level);
    }
    let built = command.arg("-g").arg(source(name)).arg("-o").arg(&program).output();
    let built = built.expect("a compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

/// The number of the line that has a name.
fn line(file: &str, name: &str) -> usize {
    let text = std::fs::read_to_string(source(file)).expect("a program");
    let mark = format!("// {name}");
    let at = text.lines().position(|line| line.trim_end().ends_with(&mark));
    at.unwrap_or_else(|| panic!("{file} has no line {name}")) + 1
}

/// What a question gives: its exit code, what it printed, what it complained of. `@name` in an argument is
/// `FILE:LINE`.
fn ask(file: &str, program: &Path, question: &[&str], given: &[&str]) -> (i32, String, String) {
    let mut command = support::tool(&[]);
    for argument in question {
        match argument.strip_prefix('@') {
            Some(name) => {
                let (name, rest) = name.split_once('#').unwrap_or((name, "last"));
                command.arg(format!("{file}:{}#{rest}", line(file, name)))
            }
            None => match argument.strip_prefix("at ") {
                Some(name) => command.arg(format!("{file}:{}", line(file, name))),
                None => command.arg(argument),
            },
        };
    }
    let done = command.arg("--").arg(program).args(given).output().expect("the tool");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code().unwrap_or(-1), text(&done.stdout), text(&done.stderr))
}

/// Asks, and looks for lines in the answer.
fn check(
    file: &str,
    program: &Path,
    (question, given): (&[&str], &[&str]),
    has: &[&str],
    has_not: &[&str],
) {
    let (code, out, errors) = ask(file, program, question, given);
    let what = format!("{question:?} of {}:\n{out}{errors}", program.display());
    assert!(code < 2, "{what}");
    let listed = |name: &str| out.contains(&format!("{file}:{} ", line(file, name)));
    for name in has {
        assert!(listed(name), "{name} is missing in {what}");
    }
    for name in has_not {
        assert!(!listed(name), "{name} is not to be in {what}");
    }
}

#[test]
fn values_are_asked_about_by_name_through_pointers_and_indices() {
    let program = build("names.c", "-O0");
    let rows: [(&[&str], &[&str], &[&str]); 6] = [
        (&["--at", "@add#1", "--value", "p->key"], &["key", "call"], &["next", "name"]),
        (&["--at", "@add#1", "--value", "p->next"], &["next"], &["key"]),
        (&["--at", "@add#1", "--value", "p->next->key"], &["key"], &["next"]),
        (&["--at", "@add#1", "--value", "*p"], &["key", "next", "name"], &[]),
        (&["--at", "@add#1", "--value", "p->name[12]"], &["name", "call"], &["key", "next"]),
        (&["--at", "@add#2", "--value", "sum"], &["add", "zero", "key"], &["name"]),
    ];
    for (asked, has, has_not) in rows {
        let question = [&["slice", "--no-pager", "--kind", "thin"], asked].concat();
        check("names.c", &program, (&question, &[]), has, has_not);
    }
    let program = build("names.c", "-O2");
    let question = ["slice", "--no-pager", "--kind", "thin", "--at", "@add#1", "--value", "p->key"];
    check("names.c", &program, (&question, &[]), &["key"], &["name"]);
}

#[test]
fn locals_of_rust_are_found_whatever_their_frame_hangs_on() {
    let program = build("locals.rs", "");
    for (value, has) in [("a", "made"), ("b", "tenfold")] {
        let question =
            ["slice", "--no-pager", "--kind", "thin", "--at", "@shown#1", "--value", value];
        check("locals.rs", &program, (&question, &[]), &[has], &[]);
    }
}

#[test]
fn a_variable_has_a_value_after_its_line_and_none_before() {
    let program = build("names.c", "-O0");
    let thin = ["slice", "--no-pager", "--kind", "thin", "--value", "fresh"];
    let before = [&thin[..], &["--at", "@fresh#1"]].concat();
    let (code, _, errors) = ask("names.c", &program, &before, &[]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("no value yet") && errors.contains("--after"), "{errors}");
    assert!(errors.contains("noise"), "who left it there: {errors}");
    let after = [&thin[..], &["--after", "@fresh#1"]].concat();
    check("names.c", &program, (&after, &[]), &["fresh"], &["noise"]);
}

#[test]
fn output_leads_back_to_the_statements_that_made_it() {
    for level in ["-O0", "-O2"] {
        let program = build("names.c", level);
        let rows: [&[&str]; 4] = [
            &["--output", "total 18"],
            &["--line", "2", "--fd", "1"],
            &["--output-byte", "14"],
            &["--output", "18"],
        ];
        for asked in rows {
            let question = [&["why", "--all"], asked].concat();
            check("names.c", &program, (&question, &[]), &["print", "add", "key"], &["other"]);
        }
    }
    let program = build("names.c", "-O0");
    let (code, _, errors) = ask("names.c", &program, &["why", "--output", "total 19"], &[]);
    assert!(code == 2 && errors.contains("never written"), "{errors}");
}

#[test]
fn a_place_that_was_not_executed_hangs_on_the_last_decision() {
    let program = build("decide.c", "-O0");
    let rows: [(&str, &str, &str); 4] = [
        ("at inner", "x", "if"),
        ("at late", "hello", "if"),
        ("at deep", "x", "if"),
        ("at eight", "x", "switch"),
    ];
    for (place, given, decision) in rows {
        let (code, out, errors) = ask("decide.c", &program, &["why", "--not", place], &[given]);
        let expected = format!("led there: decide.c:{} ", line("decide.c", decision));
        let expected = expected.replace("decide.c", &shown(&out));
        assert_eq!(code, 0, "{errors}");
        assert!(out.contains(&expected), "{place}, {expected:?}:\n{out}");
    }
    let (code, _, errors) = ask("decide.c", &program, &["why", "--not", "at if"], &["x"]);
    assert!(code == 2 && errors.contains("was executed"), "{errors}");
    let (code, _, errors) = ask("decide.c", &program, &["why", "--not", "at nobody"], &["x"]);
    assert!(code == 2 && errors.contains("no call of nobody"), "{errors}");
}

/// How the answer writes the file's name: as short as it can.
fn shown(out: &str) -> String {
    let after = out.split("led there: ").nth(1).unwrap_or_default();
    after.split(':').next().unwrap_or_default().to_owned()
}

#[test]
fn the_condition_behind_a_call_is_followed_to_both_sides() {
    let program = build("decide.c", "-O0");
    let sides = ["call", "if", "given", "most", "limit"];
    check("decide.c", &program, (&["why", "--all"], &["hello"]), &sides, &[]);
}

#[test]
fn base_and_index_are_asked_about_one_by_one_the_wrong_one_first() {
    let program = build("index.c", "-O0");
    for (given, words, root) in [("i", "the index", "index"), ("p", "the pointer", "pointer")] {
        let (code, out, errors) =
            ask("index.c", &program, &["slice", "--no-pager", "--kind", "thin"], &[given]);
        assert_eq!(code, 0, "{errors}");
        assert!(out.starts_with(words) || out.contains(&format!("\n{words}")), "{given}:\n{out}");
        assert!(out.contains(&format!("index.c:{} ", line("index.c", root))), "{given}:\n{out}");
    }
}
