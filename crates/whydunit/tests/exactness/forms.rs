//! The same for random cases of every instruction form: what the engine's events say of a case is
//! what the processor does. Only the cases themselves are stepped, not the program around them.

use super::compare::{difference, engine_side, native_side};
use super::engine_log::{Entry, Log};
use iced_x86::FlowControl;
use std::ffi::OsString;
use std::iter::Peekable;
use std::process::Stdio;
use testkit::fuzzcases::{Case, EXITS, Forms, Program};
use testkit::singlestep::{Session, Start, Step};

#[test]
fn events_of_every_instruction_form_agree() {
    check(&Forms::of_this_machine().expect("/proc/cpuinfo"), 2, 21);
}

#[test]
fn events_of_strings_and_gathers_that_fault_midway_agree() {
    for (name, seed) in [("gather", 22), ("Rep_", 23), ("Movs", 24), ("Stos", 25), ("Cmps", 26)] {
        let forms = Forms::of_this_machine().expect("/proc/cpuinfo").named(name);
        if !forms.codes().is_empty() {
            check(&forms, 40, seed);
        }
    }
}

/// Follows `rounds` cases of each form.
fn check(forms: &Forms, rounds: usize, seed: u64) {
    let program = Program::draw(forms, rounds * forms.codes().len(), seed);
    let folder = tempfile::tempdir().expect("a folder");
    let elf = program.build(folder.path()).expect("gcc");
    let last = program.cases.last().expect("there are cases");
    let wanted = EXITS.end..last.address + last.code.len() as u64;
    let log = Log::of(&elf, 64, Some(wanted)).expect("the engine runs it");
    let mut session =
        Session::launch(&[OsString::from(elf)], &Start::AtOnce, Stdio::null()).expect("launched");
    let mut entries = log.entries.iter().peekable();
    let mut wrong = Vec::new();
    for case in &program.cases {
        if let Err(what) = follow(&mut session, &log, &mut entries, case) {
            wrong.push(format!("{:?}: {what}\n{}", case.form, case.disassembly()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases differ:\n{}",
        wrong.len(),
        program.cases.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    println!("{} cases of {} forms agree", program.cases.len(), forms.codes().len());
}

/// Steps one case to its end, or to the signal it raises; the engine must not say more of it.
fn follow<'log>(
    session: &mut Session,
    log: &'log Log,
    entries: &mut Peekable<impl Iterator<Item = &'log Entry>>,
    case: &Case,
) -> Result<(), String> {
    let own = case.address..case.address + case.code.len() as u64;
    assert!(session.run_to(case.start).expect("traced"), "the program ended early");
    let mut compared = Ok(());
    while let Some(step) = session.next_step().expect("stepped") {
        let late_fault = !step.completed && branches(step);
        if late_fault {
            entries.next_if(|entry| entry.pc == step.pc);
        }
        if EXITS.contains(&step.pc) || !step.completed && step.accesses.is_empty() || late_fault {
            break;
        }
        let entry = entries.next_if(|entry| own.contains(&entry.pc));
        if let Some(what) = difference(log, entry, step) {
            let native = native_side(step);
            let theirs = entry.map_or(String::new(), |entry| engine_side(log, entry, session));
            compared = Err(format!("{what}\nnatively\n{native}under the engine\n{theirs}"));
            break;
        }
        if !step.completed || step.code == iced_x86::Code::Int3 {
            break;
        }
    }
    let more: Vec<_> =
        std::iter::from_fn(|| entries.next_if(|entry| own.contains(&entry.pc))).collect();
    match more.first() {
        Some(entry) if compared.is_ok() => {
            Err(format!("the engine goes on with\n{}", engine_side(log, entry, session)))
        }
        _ => compared,
    }
}

/// A branch to nowhere faults late under the engine (docs/internals/tests.md).
fn branches(step: &Step) -> bool {
    step.code.flow_control() != FlowControl::Next
}
