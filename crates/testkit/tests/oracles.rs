//! The two oracles against each other: the single-step reference watches random cases of every
//! instruction form. The accesses it lists must explain the memory exactly: what is read is what
//! was there, and the writes, replayed on the memory before, give the memory after.

use iced_x86::Code;
use std::ffi::OsString;
use std::process::Stdio;
use testkit::fuzzcases::{Case, EXITS, Forms, Program, SCRATCH};
use testkit::singlestep::{AccessKind, Session, Start, Step};

/// The scratch memory as the listed accesses say it is.
struct Model(Vec<u8>);

impl Model {
    fn of(session: &Session) -> Self {
        Self(session.memory(SCRATCH.start, (SCRATCH.end - SCRATCH.start) as usize))
    }

    /// Applies a step; complains about a read that does not find what the model has.
    fn apply(&mut self, step: &Step) -> Result<(), String> {
        for access in &step.accesses {
            for (offset, byte) in step.value(access).iter().enumerate() {
                let at = access.address.wrapping_add(offset as u64);
                if !SCRATCH.contains(&at) {
                    continue;
                }
                let here = &mut self.0[(at - SCRATCH.start) as usize];
                match access.kind {
                    AccessKind::Write => *here = *byte,
                    AccessKind::Read if *here != *byte => {
                        return Err(format!("{access:?} reads {byte:02x} where {here:02x} is"));
                    }
                    AccessKind::Read => {}
                }
            }
        }
        Ok(())
    }
}

/// Follows one case to its exit. An instruction that faults may have written part of a wide
/// operand, so such a case is only followed up to there: false.
fn follow(session: &mut Session, case: &Case) -> Result<bool, String> {
    assert!(
        session.run_to(case.start).expect("traced"),
        "the program ended early: {:?}, {:?}",
        session.ending(),
        case.form
    );
    let mut model = Model::of(session);
    loop {
        let step = session.next_step().expect("stepped").expect("still running");
        if EXITS.contains(&step.pc) {
            break;
        }
        // A handler of SIGTRAP cannot be stepped through without losing it.
        if !step.completed || step.code == Code::Int3 {
            return Ok(false);
        }
        model.apply(step)?;
    }
    let differs = Model::of(session).0.iter().zip(&model.0).position(|(one, other)| one != other);
    match differs {
        Some(at) => Err(format!("{:#x} was written by nobody", SCRATCH.start + at as u64)),
        None => Ok(true),
    }
}

#[test]
fn listed_accesses_explain_the_memory_for_every_form() {
    check(&Forms::of_this_machine().expect("/proc/cpuinfo"), 2, 11);
}

#[test]
fn gathers_that_fault_midway_are_explained() {
    check(&Forms::of_this_machine().expect("/proc/cpuinfo").named("gather"), 60, 12);
}

/// Follows `rounds` cases of each form.
fn check(forms: &Forms, rounds: usize, seed: u64) {
    let program = Program::draw(forms, rounds * forms.codes().len(), seed);
    let folder = tempfile::tempdir().expect("a folder");
    let elf = program.build(folder.path()).expect("gcc");
    let mut session =
        Session::launch(&[OsString::from(elf)], &Start::AtOnce, Stdio::null()).expect("launched");
    let (mut wrong, mut explained) = (Vec::new(), 0);
    for case in &program.cases {
        match follow(&mut session, case) {
            Ok(completed) => explained += usize::from(completed),
            Err(reason) => wrong.push(format!("{:?}: {reason}\n{}", case.form, case.disassembly())),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    assert!(explained * 10 > program.cases.len() * 8, "{explained} of {}", program.cases.len());
}
