//! Processors that differ: what a branch to where there is nothing leaves behind, on each kind. The
//! model below says what each does; this machine's own processor, run natively, says whether the
//! model is right about it; and the engine is to be each of them, recorded and replayed.

use engine::host::{Job, Record};
use engine::processor;
use recording::Quirks;
use replay::{Session, Shown};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs");

/// The line that `fault_branch.c` prints of a branch on such a processor.
fn model(branch: &str, target: u64, quirks: Quirks) -> String {
    let calls = branch.starts_with("call");
    let unused = 64 - quirks.address_bits;
    if ((target << unused) as i64 >> unused) as u64 != target {
        let slot = if calls && quirks.call_pushes { "pushed" } else { "untouched" };
        return format!(
            "{branch} to {target:x}: at the branch, stack +0, slot {slot}, code 128 address 0 trap 13 error 0"
        );
    }
    let (stack, slot) = match branch {
        "return" => ("+8", "untouched"),
        "return and pop" => ("+48", "untouched"),
        _ if calls => ("-8", "pushed"),
        _ => ("+0", "untouched"),
    };
    let last_page = (1u64 << (quirks.address_bits - 1)) - 4096;
    let error = if target < last_page { 0x14 } else { 0x15 };
    format!(
        "{branch} to {target:x}: at the target, stack {stack}, slot {slot}, \
         code 1 address {target:x} trap 14 error {error:x}"
    )
}

/// Every line is what the model says of its branch and target.
fn check(output: &str, quirks: Quirks) {
    let mut lines = 0;
    for line in output.lines().filter(|line| line.contains(" to ")) {
        let (branch, rest) = line.split_once(" to ").expect("a branch");
        let target = rest.split(':').next().expect("a target");
        let target = u64::from_str_radix(target, 16).expect("an address");
        assert_eq!(line, model(branch, target, quirks), "{quirks:?}");
        lines += 1;
    }
    assert_eq!(lines, 2 * 7 * 19, "{output}");
}

fn build(folder: &Path) -> PathBuf {
    let program = folder.join("fault_branch");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-I", PROGRAMS, "-o"]).arg(&program);
    gcc.arg(format!("{PROGRAMS}/fault_branch.c"));
    assert!(gcc.status().expect("gcc runs").success(), "gcc builds it");
    program
}

#[test]
fn the_model_is_right_about_this_processor() {
    let folder = tempfile::tempdir().expect("a folder");
    let native = Command::new(build(folder.path())).output().expect("it runs");
    assert!(native.status.success());
    check(&String::from_utf8_lossy(&native.stdout), processor::here());
}

#[test]
fn the_engine_is_any_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path());
    for address_bits in [48, 57] {
        for call_pushes in [false, true] {
            let quirks = Quirks { address_bits, call_pushes, ..processor::here() };
            let output = folder.path().join("output");
            let shell = format!("{} > {}", program.display(), output.display());
            let mut job =
                Job { quirks, ..Job::new("/bin/sh".into(), vec!["-c".into(), shell.into()]) };
            engine::host::run(&job).expect("it runs");
            check(&std::fs::read_to_string(&output).expect("an output"), quirks);

            job.record = Some(Record::default());
            let file = folder.path().join("recording");
            replay::record(&job, &file, true).expect("recorded");
            check(&std::fs::read_to_string(&output).expect("an output"), quirks);
            let session = Session::open(&file).expect("a recording");
            assert_eq!(session.recording().meta().quirks, Some(quirks));
            for start in session.recording().processes() {
                let plan = events::Plan::everything();
                let mut nobody = |_: i32| Box::new(events::Discard::default()) as _;
                let replayed = session
                    .replay(start.process, plan, Shown::Nothing, &mut nobody)
                    .expect("replayed");
                assert!(replayed.divergence.is_none(), "{quirks:?}: {replayed:?}");
            }
        }
    }
}
