//! Random instruction cases under the tool, in every way of observing, against the bare processor.

use std::ffi::OsString;
use testkit::fuzzcases::{Forms, Program, Tool, compare};

/// Cases of one program.
const CHUNK: usize = 20_000;

/// Runs `cases` random cases under `whydunit run --observe HOW`.
fn check(how: &str, cases: usize, seed: u64) {
    check_with(&["--observe", how], cases, seed);
}

/// Runs `cases` random cases under `whydunit run` with these words.
fn check_with(how: &[&str], cases: usize, seed: u64) {
    let forms = Forms::of_this_machine().expect("/proc/cpuinfo");
    let words = [&["run", "--rules", "none", "--exit-code=guest"], how, &["--"]].concat();
    let tool: OsString = env!("CARGO_BIN_EXE_whydunit").into();
    let tool =
        Tool { command: [tool].into_iter().chain(words.iter().map(OsString::from)).collect() };
    for chunk in 0..cases.div_ceil(CHUNK) {
        let program =
            Program::draw(&forms, CHUNK.min(cases), seed.wrapping_add((chunk as u64) << 32));
        let folder = tempfile::tempdir().expect("a folder");
        let elf = program.build(folder.path()).expect("gcc");
        let comparison = compare::compare(&program, &elf, &tool).expect("both run");
        if let Some(found) = comparison.disagreements.first() {
            let case = &program.cases[found.index as usize];
            let dump = |tool: &Tool| compare::dump(&elf, tool, found.index).expect("it runs");
            let (native, theirs) = (dump(&Tool::default()), dump(&tool));
            panic!(
                "{how:?}, seed {seed}, case {} of chunk {chunk}: {:?}\n{}\nnatively\n{native}\n\
                 under the tool\n{theirs}\n\
                 difftest --only {:?} --seed {seed} --tool '{:?}' looks closer",
                found.index,
                case.form,
                case.disassembly(),
                case.form,
                tool.command,
            );
        }
    }
    println!("{how:?}: {cases} cases agree");
}

#[test]
fn plain() {
    check("nothing", 100_000, 3);
}

#[test]
fn with_ticks() {
    check("ticks", 20_000, 4);
}

#[test]
fn with_blocks() {
    check("blocks", 20_000, 5);
}

#[test]
fn with_memory() {
    check("memory", 20_000, 6);
}

#[test]
fn with_a_shadow() {
    check("shadow", 20_000, 7);
}

/// The middle of the memory that cases work on is painted: accesses there do not pass, and are made
/// the slow way.
#[test]
fn with_a_painted_shadow() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.json");
    let paint = r#"[{"range": {"start": 536878848, "end": 536879360}, "bits": 1}]"#;
    let shadow = format!(r#"{{"Shadow": {{"reads": 1, "writes": 1, "paint": {paint}}}}}"#);
    std::fs::write(&plan, format!(r#"{{"screens": [{shadow}]}}"#)).expect("room for a plan");
    check_with(&["--plan", plan.to_str().expect("a plain path")], 20_000, 9);
}

#[test]
fn with_values() {
    check("values", 20_000, 8);
}
