//! `whydunit slice --save` and `whydunit step`: the statements of a slice one after the other, with
//! the values that they had.

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use support::{assert_in_order, errors, root, run, text};

/// A slice of one of the examples, saved.
struct Saved {
    program: PathBuf,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

fn plain(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

fn saved(example: &str, question: &[&str]) -> Saved {
    let folder = tempfile::tempdir().expect("a folder");
    let source = root().join("examples/bugs").join(format!("{example}.c"));
    let name = format!("step-{example}-{}", question.len());
    let program = support::build_file(&source, &name, &["-g", "-O0", "-pthread"]);
    let file = folder.path().join("slice");
    let mut arguments = vec!["slice", "--no-pager", "--save", plain(&file)];
    arguments.extend(question);
    arguments.extend(["--", plain(&program)]);
    let output = run(&arguments);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("step through it with whydunit step"), "{}", errors(&output));
    Saved { program, file, _folder: folder }
}

const STALE: [&str; 6] = ["--kind", "thin", "--at", "stale_value.c:62#2", "--value", "value"];

#[test]
fn steps_show_true_values_without_the_program_at_hand() {
    let saved = saved("stale_value", &STALE);
    let file = plain(&saved.file);
    let output =
        run(&["step", file, "goto 14", "next", "print value", "after value", "back", "run"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert_in_order(
        &text(&output),
        &[
            "Slice of value: 21 steps",
            "stale_value.c:68 main",
            "14/21",
            "value += stock->goods[i].count * stock->goods[i].price;",
            "changes  value: 0 -> 1000",
            "changes  value: 1000 -> 19000",
            "value = 1000",
            "value = 19000",
            "14/21",
            "21/21",
            "here value was asked about",
        ],
    );
    // The recording of the slice is all that is needed.
    let checked = run(&["replay", "--check", file]);
    assert!(errors(&checked).contains("went as recorded: 21 checks"), "{}", errors(&checked));
    std::fs::remove_file(&saved.program).expect("removed");
    let output = run(&["step", file, "next"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let told = text(&output);
    assert!(told.contains("2/21") && told.contains("stale_value.c:26 add_goods"), "{told}");
}

#[test]
fn all_steps_as_data() {
    let saved = saved("order", &[]);
    let output = run(&["step", "--json", plain(&saved.file)]);
    let data: Value = serde_json::from_str(&text(&output)).expect("JSON");
    let steps = data["result"]["steps"].as_array().expect("steps");
    let threads: std::collections::BTreeSet<i64> =
        steps.iter().filter_map(|step| step["thread"].as_i64()).collect();
    assert_eq!(threads.len(), 2, "the value came from another thread");
    let cleared = steps.iter().find(|step| {
        step["source"].as_str().is_some_and(|line| line.starts_with("worker->queue = NULL;"))
    });
    let cleared = cleared.expect("where the pointer was made");
    let name = cleared["changes"][0]["name"].as_str().unwrap_or_default();
    assert!(name.ends_with("queue"), "{cleared:#}");
    assert_eq!(cleared["changes"][0]["before"], "0x0", "and it stays so");
    let skipped: u64 = steps.iter().filter_map(|step| step["skipped"].as_u64()).sum();
    assert!(skipped > 1000, "{skipped}");
}

#[test]
fn the_steps_can_be_looked_around_from() {
    let saved = saved("null_from_error", &[]);
    let file = plain(&saved.file);
    let output = run(&[
        "step", file, "goto 20", "list", "where", "locals", "threads", "injected", "steps", "help",
    ]);
    assert_in_order(
        &text(&output),
        &[
            "20/",
            "if (strcmp(folders[i].path, path) == 0)",
            "reads    folders[",
            ">    32 ",
            "(find_folder)",
            "(main)",
            "i = 2",
            "> thread ",
            "left out",
            ">   20 ",
            "print EXPR",
        ],
    );
}

#[test]
fn wrong_commands_and_files_are_answered_with_what_to_do() {
    let saved = saved("stale_value", &STALE);
    let file = plain(&saved.file);
    let program = plain(&saved.program);
    let recording = saved.file.with_extension("recording");
    let recorded = run(&["record", "--output", plain(&recording), "--", program]);
    assert!(recording.exists(), "{}", errors(&recorded));
    let rows: [(&[&str], &str); 8] = [
        (&["step", file, "nxt"], "perhaps next?"),
        (&["step", file, "goto 3", "print pric"], "price"),
        (&["step", file, "print"], "print what?"),
        (&["step", file, "goto x"], "'x' is not a number"),
        (&["step", plain(&recording)], "is a recording, not a slice"),
        (&["step", program], "not"),
        (&["step", "/no/such/file"], "/no/such/file"),
        (&["slice", "--save", file, "--", program], "--force"),
    ];
    for (arguments, expected) in rows {
        let output = run(arguments);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(last.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn damaged_slices_are_refused() {
    let saved = saved("stale_value", &STALE);
    let whole = std::fs::read(&saved.file).expect("a file");
    let damaged = saved.file.with_extension("damaged");
    let undamaged = text(&run(&["step", plain(&saved.file), "run", "back"]));
    let mut state = 7u64;
    let mut refused = 0;
    for round in 0..16 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (state >> 20) as usize % whole.len();
        let mut bytes = whole.clone();
        match round % 4 {
            0 => bytes.truncate(at),
            _ => bytes[at] ^= 1 << (state % 8),
        }
        std::fs::write(&damaged, &bytes).expect("written");
        let output = run(&["step", plain(&damaged), "run", "back"]);
        // What is not needed for these two answers may be damaged; the answers may not.
        match output.status.code() {
            Some(0) => assert_eq!(text(&output), undamaged, "byte {at}"),
            Some(2) => refused += 1,
            code => panic!("byte {at}: {code:?} {}", errors(&output)),
        }
    }
    assert!(refused >= 12, "only {refused} of 16 were noticed");
}
