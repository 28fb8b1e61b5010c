//! Questions that cannot be answered as asked, and programs of which little is known: `slice` and
//! `why` say what is missing, or make do.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::{errors, root, run, text};

fn plain(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

fn build(name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad_slices");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, source).expect("written");
    support::build_file(&file, &format!("bad-{name}"), flags)
}

/// The variable is dead where it is asked for.
const GONE: &str = r#"
#include <stdio.h>
__attribute__((noipa)) static int make(int n) { return n * 3 + 1; }
__attribute__((noipa)) static void take(int n) { printf("%d\n", n); }
__attribute__((noipa)) static void later(int n) { printf("later %d\n", n); }
int main(int argc, char **argv) {
    int total = make(argc);
    take(total);
    later(argc);
    later(argc + 1);
    later(argc + 2);
    return 0;
}
"#;

#[test]
fn a_value_that_is_optimised_out_is_offered_elsewhere() {
    let program = build("gone", GONE, &["-g", "-O2"]);
    let asked = ["slice", "--at", "gone.c:11", "--value", "total", "--", plain(&program)];
    let output = run(&asked);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.contains("optimised out") && last.contains("--value '$r"), "{said}");
    assert!(last.contains("gone.c:"), "where it can be had: {said}");
}

/// The variable is in a register where it is asked for, and nowhere else.
const IN_REGISTER: &str = r#"
static volatile int shared;
__attribute__((noipa)) static int make(int number) { return number * 3; }
__attribute__((noipa)) static void take(int number) { shared = number; }
int main(int argc, char **argv) {
    int total = make(argc + 4);
    take(1);
    take(total);
    return 0;
}
"#;

#[test]
fn a_variable_in_a_register_is_no_less_known() {
    let program = build("in_register", IN_REGISTER, &["-g", "-O2"]);
    let asked = ["slice", "--at", "in_register.c:7", "--value", "total", "--kind", "thin"];
    let output = run(&[&asked[..], &["--no-pager", "--", plain(&program)]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(text(&output).contains("in_register.c:3 make"), "{}", text(&output));
}

#[test]
fn a_moment_that_never_comes() {
    let program = build("never", GONE, &["-g", "-O0"]);
    let rows = [
        ("never.c:8#2", "was executed once, so there is no never.c:8#2"),
        ("never.c:8#last/77", "there is no thread /77: the process has only one"),
        ("never.c:900", "never.c"),
        ("crash", "the program did not crash"),
    ];
    for (moment, expected) in rows {
        let output = run(&["slice", "--at", moment, "--", plain(&program)]);
        assert_eq!(output.status.code(), Some(2), "{moment}");
        assert!(errors(&output).contains(expected), "{moment}: {}", errors(&output));
    }
}

fn example(name: &str, flags: &[&str]) -> PathBuf {
    let source = root().join("examples/bugs/null_from_error.c");
    support::build_file(&source, &format!("bad-{name}"), flags)
}

#[test]
fn a_program_that_was_built_anew_is_noticed() {
    let source = "int main(int argc, char **argv) {\n    int *p = 0;\n    return *p + argc;\n}\n";
    let program = build("anew", source, &["-g", "-O0"]);
    let recording = program.with_extension("whydunit");
    let events = program.with_extension("events");
    run(&["record", "--quiet", "--force", "-o", plain(&recording), "--", plain(&program)]);
    run(&["run", "--observe", "memory", "--save-events", plain(&events), "--", plain(&program)]);
    let asks = |expected: &str| {
        let of_recording = run(&["why", plain(&recording)]);
        let of_events = run(&["slice", "--events", plain(&events), "--", plain(&program)]);
        for output in [&of_recording, &of_events] {
            assert_eq!(errors(output).contains("has changed since"), !expected.is_empty());
            assert!(errors(output).contains(expected), "{}", errors(output));
        }
        text(&of_recording)
    };
    let before = asks("");
    assert!(before.contains("anew.c:3"), "{before}");
    // Lines move, and so does the code.
    let source = format!("int unused(int n) {{ return n * 3; }}\n\n\n{source}");
    build("anew", &source, &["-g", "-O1"]);
    let after = asks("has changed since");
    assert!(after.contains("anew.c:3 (main)"), "as it was recorded: {after}");
}

#[test]
fn of_a_stripped_program_addresses_are_told() {
    let program = example("stripped", &["-O0", "-s"]);
    let output = run(&["why", "--", plain(&program)]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let told = text(&output);
    assert!(told.contains("SIGSEGV") && told.contains("0x55555555"), "{told}");
    let output = run(&["slice", "--kind", "thin", "--instructions", "--", plain(&program)]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(text(&output).lines().count() > 5, "{}", text(&output));
    let named = run(&["slice", "--at", "end", "--value", "names", "--", plain(&program)]);
    assert_eq!(named.status.code(), Some(2), "{}", text(&named));
}

fn recorded(program: &Path) -> PathBuf {
    let recording = program.with_extension("recording");
    let output = run(&["record", "--force", "--output", plain(&recording), "--", plain(program)]);
    assert!(recording.exists(), "{}", errors(&output));
    recording
}

#[test]
fn a_recording_without_its_program_is_still_explained() {
    let program = example("gone-away", &["-g", "-O0"]);
    let recording = recorded(&program);
    let before = text(&run(&["why", plain(&recording)]));
    assert!(before.contains("return NULL;"), "{before}");
    std::fs::remove_file(&program).expect("removed");
    let output = run(&["why", plain(&recording)]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert_eq!(text(&output), before, "the recording has all that is needed");
}

/// Where the debug information of a file is.
fn debug_sections(program: &Path) -> Vec<(usize, usize)> {
    let listed = Command::new("readelf").args(["-SW", plain(program)]).output().expect("readelf");
    let listed = text(&listed);
    let rows = listed.lines().filter(|line| line.contains(".debug_"));
    let number =
        |word: Option<&str>| usize::from_str_radix(word.expect("a number"), 16).expect("hex");
    rows.map(|row| {
        let mut words = row.rsplit(']').next().expect("a row").split_whitespace().skip(3);
        (number(words.next()), number(words.next()))
    })
    .collect()
}

#[test]
fn broken_debug_information_is_no_reason_to_fail() {
    let program = example("fuzzed", &["-g", "-O1"]);
    let recording = recorded(&program);
    let whole = std::fs::read(&program).expect("a file");
    let sections = debug_sections(&program);
    assert!(sections.len() >= 4, "{sections:?}");
    let mut state = 3u64;
    let mut chance = |limit: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for round in 0..12 {
        let mut bytes = whole.clone();
        for _ in 0..1 << (round % 6) {
            let (start, length) = sections[chance(sections.len())];
            bytes[start + chance(length.max(1))] = chance(256) as u8;
        }
        std::fs::write(&program, &bytes).expect("written");
        let rows: [&[&str]; 3] = [
            &["why"],
            &["slice", "--kind", "thin", "--json"],
            &["slice", "--at", "null_from_error.c:53", "--value", "names"],
        ];
        for row in rows {
            let output = run(&[row, &[plain(&recording)]].concat());
            let code = output.status.code();
            assert!(
                matches!(code, Some(0..=2)),
                "round {round} {row:?}: {code:?} {}",
                errors(&output)
            );
        }
    }
}

#[test]
fn why_fits_one_screen() {
    for name in ["stack_smash", "heap_overflow", "double_free", "dangling"] {
        let source = root().join("examples/bugs").join(format!("{name}.c"));
        let program = support::build_file(&source, &format!("bad-screen-{name}"), &["-g", "-O0"]);
        let told = text(&run(&["why", "--", plain(&program)]));
        assert!((8..=45).contains(&told.lines().count()), "{told}");
    }
}
