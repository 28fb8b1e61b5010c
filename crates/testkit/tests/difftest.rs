//! The random cases agree with themselves, and the comparison sees a tool that is wrong, one that
//! dies and one that is merely a detour.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use testkit::fuzzcases::{Comparison, Forms, Program, Tool, compare};

struct Built {
    program: Program,
    elf: PathBuf,
    folder: tempfile::TempDir,
}

fn build(cases: usize, seed: u64) -> Built {
    build_of(&Forms::of_this_machine().expect("/proc/cpuinfo"), cases, seed)
}

fn build_of(forms: &Forms, cases: usize, seed: u64) -> Built {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::draw(forms, cases, seed);
    let elf = program.build(folder.path()).expect("gcc");
    Built { program, elf, folder }
}

impl Built {
    /// Compares with a tool that is this shell script; `$0`'s folder holds the program.
    fn against(&self, script: &str) -> Comparison {
        let path = self.folder.path().join("tool");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("executable");
        let tool = Tool { command: vec![path.into()] };
        compare::compare(&self.program, &self.elf, &tool).expect("both run")
    }
}

#[test]
fn the_processor_agrees_with_itself_on_every_form() {
    let forms = Forms::of_this_machine().expect("/proc/cpuinfo").codes().len();
    let built = build(3 * forms, 1);
    let comparison = built.against("exec \"$@\"");
    let shown: Vec<_> = comparison.disagreements.iter().take(5).collect();
    assert!(shown.is_empty(), "{shown:?}");
    assert_eq!(comparison.native.len(), 3 * forms);
    let drawn: std::collections::HashSet<_> =
        built.program.cases.iter().map(|case| case.form).collect();
    assert_eq!(drawn.len(), forms, "every form is drawn");
}

#[test]
fn cases_end_in_every_way_that_they_should() {
    let built = build(8000, 2);
    let comparison = built.against("exec \"$@\"");
    for signal in [4, 5, 7, 8, 11] {
        assert!(comparison.native.iter().any(|record| record.signal == signal), "{signal}");
    }
    let quiet = comparison.native.iter().filter(|record| record.signal == 0).count();
    assert!(quiet * 10 > comparison.native.len() * 8, "most cases run through: {quiet}");
    assert!(comparison.native.iter().any(|record| record.exit == 1), "branches are taken");
}

#[test]
fn a_wrong_instruction_is_found_and_explained() {
    let adds = Forms::of_this_machine().expect("/proc/cpuinfo").named("Add_r64_rm64");
    let built = build_of(&adds, 200, 3);
    let (index, at) = first_register_add(&built.program);
    let broken = built.folder.path().join("broken");
    let mut bytes = std::fs::read(&built.elf).expect("the program");
    let case = &built.program.cases[index];
    let place = bytes.windows(case.code.len()).position(|part| part == case.code).expect("there");
    // What a translator does that takes ADD for SUB.
    bytes[place + at] = 0x2b;
    std::fs::write(&broken, bytes).expect("a file");
    std::fs::set_permissions(&broken, PermissionsExt::from_mode(0o755)).expect("executable");
    let comparison = built.against("shift; exec \"$(dirname \"$0\")/broken\" \"$@\"");
    let found: Vec<_> = comparison.disagreements.iter().map(|one| one.index as usize).collect();
    assert_eq!(found, [index]);
    let native = compare::dump(&built.elf, &Tool::default(), index as u32).expect("a dump");
    let theirs = compare::dump(&broken, &Tool::default(), index as u32).expect("a dump");
    assert!(
        native
            .lines()
            .zip(theirs.lines())
            .any(|(one, other)| { one != other && one.starts_with("out.r") })
    );
}

/// The first case whose own instruction is ADD r64, r64, alone; and where its opcode byte is.
fn first_register_add(program: &Program) -> (usize, usize) {
    let alone = |case: &testkit::fuzzcases::Case| case.code.len() == 8 && case.code[1] == 0x03;
    let index = (program.cases.iter())
        .position(|case| case.form == iced_x86::Code::Add_r64_rm64 && alone(case));
    (index.expect("ADD is drawn"), 1)
}

#[test]
fn a_tool_that_dies_midway_costs_only_the_case_it_dies_on() {
    let built = build(600, 4);
    // Dies on case 300, wherever it starts.
    let comparison = built.against(
        "if [ $# -eq 1 ]; then \"$1\" --range 0 300; exit 139; fi\n\
         if [ \"$3\" -le 300 ]; then \"$1\" --range \"$3\" 300; exit 139; fi\n\
         exec \"$@\"",
    );
    let found: Vec<_> =
        comparison.disagreements.iter().map(|one| (one.index, one.tool.is_none())).collect();
    assert_eq!(found, [(300, true)]);
}

#[test]
fn a_tool_that_is_not_there_is_an_error() {
    let built = build(10, 5);
    let tool = Tool { command: vec![Path::new("/nowhere/at/all").into()] };
    let error = compare::compare(&built.program, &built.elf, &tool).expect_err("no such tool");
    assert!(format!("{error:#}").contains("/nowhere/at/all"), "{error:#}");
}
