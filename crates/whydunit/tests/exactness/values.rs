//! The values of accesses are those that the reference sees: before reads, after writes.
//!
//! Only programs without a C library: what that keeps on the stack to guard it is random.

use super::engine_log::{self, Call};
use super::{build, reference};
use anyhow::{Context, ensure};
use events::plan::Execution;
use events::{Consumer, Decoder, Event, Plan};
use std::path::Path;
use testkit::singlestep::AccessKind;

/// Address, size, whether it writes, and its bytes if they are told.
type Valued = (u64, u32, bool, Option<Vec<u8>>);

#[derive(Default)]
struct Values {
    decoder: Decoder,
    accesses: Vec<Valued>,
    calls: Vec<Call>,
    malformed: bool,
}

impl Consumer for Values {
    fn records(&mut self, bytes: &[u8]) {
        let (accesses, calls) = (&mut self.accesses, &mut self.calls);
        let done = self.decoder.events(bytes, |event| match event {
            Event::Access { address, size, write } => accesses.push((address, size, write, None)),
            Event::Value(words) => {
                let (_, size, _, value) = accesses.last_mut().expect("an access");
                let bytes = words.iter().flat_map(|word| word.to_le_bytes());
                *value = Some(bytes.take(*size as usize).collect());
            }
            Event::Syscall { number, arguments, answer } => calls.push((number, arguments, answer)),
            _ => {}
        });
        self.malformed |= done.is_err();
    }
}

fn engine_side(program: &Path, superblock: usize, plan: &Path) -> anyhow::Result<Values> {
    let mut values = Values::default();
    engine_log::observe(program, superblock, plan, &mut values)?;
    ensure!(!values.malformed, "the events are malformed");
    Ok(values)
}

/// A value as it is, but for what x87 notes of its last instruction in an environment of 28 bytes: the
/// processor has seen the translation there.
fn without_pointers(value: &[u8]) -> Vec<u8> {
    let mut value = value.to_vec();
    if value.len() == 28 {
        value[12..24].fill(0);
    }
    value
}

/// Compares all accesses; how many have values.
fn check(program: &Path, superblock: usize, plan: &Path) -> anyhow::Result<usize> {
    let values = engine_side(program, superblock, plan)?;
    let mut session = reference::launch(program, &values.calls)?;
    let mut theirs = values.accesses.iter();
    let mut told = 0;
    while let Some(step) = session.next_step()? {
        for access in &step.accesses {
            let (address, size, write, value) = theirs.next().context("the engine has ended")?;
            let native = (access.address, access.size, access.kind == AccessKind::Write);
            ensure!(native == (*address, *size, *write), "other accesses at {:#x}", step.pc);
            let Some(value) = value else { continue };
            let same = without_pointers(value) == without_pointers(step.value(access));
            ensure!(
                same,
                "{:#x}, {size} bytes at {address:#x}: {:x?} natively, {value:x?} under the engine",
                step.pc,
                step.value(access)
            );
            told += 1;
        }
    }
    ensure!(theirs.next().is_none(), "the engine goes on");
    Ok(told)
}

const PROGRAMS: [&str; 8] = [
    "bit_strings.s",
    "compare_move.s",
    "enter_leave.s",
    "flags.s",
    "indirect.s",
    "locked.s",
    "segments.s",
    "x87.s",
];

#[test]
fn values_agree_with_single_stepping() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plan.json");
    let plan = Plan::observing(Execution::Values);
    std::fs::write(&file, serde_json::to_vec(&plan).expect("a plan")).expect("room");
    let programs = build(&PROGRAMS, folder.path());
    assert_eq!(programs.len(), PROGRAMS.len());
    let mut total = 0;
    for (source, program) in &programs {
        for superblock in [64, 2] {
            match check(program, superblock, &file) {
                Ok(count) => total += count,
                Err(difference) => panic!("{}, {superblock}: {difference:#}", source.display()),
            }
        }
    }
    println!("{total} values agree");
    assert!(total > 1000);
}
