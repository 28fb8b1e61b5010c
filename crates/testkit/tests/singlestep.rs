//! The single-step reference against small assembly programs whose counts and accesses are known
//! by construction (`tests/programs/*.s`: `#=` lines give counts, `#>` lines every access in
//! order), and against valgrind's lackey on a C program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::singlestep::{AccessKind, Ending, Flow, Session, Start, Step};

/// Where the programs have their data.
const DATA: u64 = 0x60_0000;

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

fn build(name: &str, folder: &Path) -> PathBuf {
    let output = folder.join("program");
    let status = Command::new("gcc")
        .args(["-nostdlib", "-static", "-no-pie", "-O2", "-fno-stack-protector", "-mno-sse"])
        .args(["-fcf-protection=none", "-Wl,--build-id=none", "-Wl,-z,noexecstack"])
        .args(["-Wl,-Tdata=0x600000", "-Wl,--section-start=.outside=0x500000", "-o"])
        .arg(&output)
        .arg(programs().join(name))
        .status()
        .expect("gcc");
    assert!(status.success(), "gcc {name}");
    output
}

/// Steps through a program and hands each step to `see`.
fn run(program: &Path, start: &Start, mut see: impl FnMut(&Step)) -> Session {
    let command = [OsString::from(program)];
    let mut session = Session::launch(&command, start, Stdio::null()).expect("launched");
    while let Some(step) = session.next_step().expect("stepped") {
        see(step);
    }
    session
}

/// An access as the programs write it: `W d+1f8 8 0000000000000007`.
fn access_lines(step: &Step) -> Vec<String> {
    (step.accesses.iter())
        .map(|access| {
            let kind = if access.kind == AccessKind::Read { 'R' } else { 'W' };
            let value: String =
                step.value(access).iter().rev().map(|byte| format!("{byte:02x}")).collect();
            let place = access.address.wrapping_sub(DATA);
            format!("{kind} d+{place:x} {} {value}", access.size)
        })
        .collect()
}

fn check(name: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(name, folder.path());
    let source = std::fs::read_to_string(programs().join(name)).expect("the source");
    let mut accesses = Vec::new();
    let session = run(&program, &Start::AtOnce, |step| accesses.extend(access_lines(step)));
    assert!(matches!(session.ending(), Some(Ending::Exit(_))), "{name}: {:?}", session.ending());
    let counts = serde_json::to_value(session.counts()).expect("counts");
    let expected = source.lines().find_map(|line| line.strip_prefix("#=")).expect("a #= line");
    let words: Vec<&str> = expected.split_whitespace().collect();
    for pair in words.chunks(2) {
        assert_eq!(counts[pair[0]].to_string(), pair[1], "{name}: {}; all: {counts}", pair[0]);
    }
    let listed: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("#> ")).collect();
    for (found, wanted) in accesses.iter().zip(&listed) {
        assert!(found.starts_with(wanted), "{name}: found '{found}', wanted '{wanted}'");
    }
    assert!(listed.is_empty() || listed.len() == accesses.len(), "{name}: {accesses:#?}");
}

#[test]
fn counted_loops() {
    check("loop.s");
}

#[test]
fn string_instructions() {
    check("repeat.s");
}

#[test]
fn stack_instructions() {
    check("stack.s");
}

#[test]
fn bit_strings() {
    check("bits.s");
}

#[test]
fn masked_moves_and_gathers() {
    check("masked.s");
}

#[test]
fn large_operands() {
    check("state.s");
}

#[test]
fn branches_and_ticks() {
    check("branches.s");
}

#[test]
fn addressing_forms() {
    check("addresses.s");
}

#[test]
fn code_that_changes_itself() {
    check("changing.s");
}

#[test]
fn signals() {
    check("signals.s");
    let folder = tempfile::tempdir().expect("a folder");
    let program = build("signals.s", folder.path());
    let (mut raised, mut entered, mut stored) = (Vec::new(), Vec::new(), Vec::new());
    run(&program, &Start::AtOnce, |step| {
        if !step.completed {
            raised.push(format!("{:?}", step.code));
        }
        entered.extend(step.entered_handler_of);
        if step.code == iced_x86::Code::Stosb_m8_AL {
            stored.push((step.completed, step.accesses.len()));
        }
    });
    assert_eq!(raised, ["Ud2", "Stosb_m8_AL"]);
    assert_eq!(entered, [4, 5, 10, 11]);
    assert_eq!(stored, [(false, 2), (true, 2)], "two before the fault, two after the repair");
}

#[test]
fn system_calls_carry_their_arguments_and_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build("signals.s", folder.path());
    let mut calls = Vec::new();
    run(&program, &Start::AtOnce, |step| {
        if let Flow::System(call) = step.flow {
            calls.push((call.number, call.arguments[0], call.result));
        }
    });
    assert_eq!(calls[0], (13, 4, Some(0)));
    assert!(calls.contains(&(9, 0x70_0000, Some(0x70_0000))));
    assert_eq!(calls.last(), Some(&(60, 0, None)));
}

#[test]
fn reporting_starts_behind_the_stop_and_outside_the_runner() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build("stopping.s", folder.path());
    let mut places = Vec::new();
    let start = Start::AfterStop(0x40_0000..0x50_0000);
    let session = run(&program, &start, |step| places.push(step.pc));
    assert_eq!(session.counts().instructions, 4);
    assert_eq!(places[0], 0x50_0000);
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let command = [OsString::from("/nowhere/at/all")];
    let error = Session::launch(&command, &Start::AtOnce, Stdio::null()).err().expect("an error");
    assert!(format!("{error:#}").contains("/nowhere/at/all"), "{error:#}");
}

/// An access without its value.
type Touch = (u64, u32, AccessKind);

/// What lackey says: instructions, and accesses in order (a modify is a read and a write).
fn lackey(program: &Path) -> (Vec<u64>, Vec<Touch>) {
    let output = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", "--basic-counts=no", "--log-fd=1"])
        .arg(program)
        .output()
        .expect("valgrind, which scripts/install-test-needs installs");
    let (mut pcs, mut touches) = (Vec::new(), Vec::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut words = line.split_whitespace();
        let (Some(kind), Some(rest)) = (words.next(), words.next()) else { continue };
        let Some((address, size)) = rest.split_once(',') else { continue };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        let Ok(size) = size.parse() else { continue };
        match kind {
            "I" => pcs.push(address),
            "L" => touches.push((address, size, AccessKind::Read)),
            "S" => touches.push((address, size, AccessKind::Write)),
            "M" => touches
                .extend([(address, size, AccessKind::Read), (address, size, AccessKind::Write)]),
            _ => {}
        }
    }
    // To valgrind every repetition of a REP instruction is an instruction.
    pcs.dedup();
    (pcs, touches)
}

#[test]
fn valgrind_sees_the_same_instructions_and_accesses() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build("sort.c", folder.path());
    let (mut pcs, mut touches): (Vec<u64>, Vec<Touch>) = Default::default();
    run(&program, &Start::AtOnce, |step| {
        pcs.push(step.pc);
        touches.extend(step.accesses.iter().map(|one| (one.address, one.size, one.kind)));
    });
    let (their_pcs, their_touches) = lackey(&program);
    assert!(pcs.len() > 5000 && touches.len() > 1000, "{} {}", pcs.len(), touches.len());
    assert_eq!(pcs.iter().zip(&their_pcs).position(|(one, other)| one != other), None);
    assert_eq!(pcs.len(), their_pcs.len());
    let differs = touches.iter().zip(&their_touches).find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(touches.len(), their_touches.len());
}
