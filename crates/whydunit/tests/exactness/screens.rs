//! Accesses that do not pass the shadow are just those of the reference that touch painted memory:
//! none more, none less, in order, wherever superblocks are cut.

use super::{build, engine_log, reference};
use anyhow::{Context, bail, ensure};
use events::plan::{GRANULE, Paint, Screen, Shadow};
use events::suspicion::{Access, Suspicion};
use events::{Consumer, Decoder, Event, Plan};
use std::path::Path;
use testkit::singlestep::AccessKind;

const READS: u8 = 3;
const WRITES: u8 = 1;

/// Memory that programs use: static ones, position-independent ones with their heap, the stack.
const MEMORY: [(u64, u64); 3] = [
    (0x40_0000, 0x44_0000),
    (0x5555_5555_8000, 0x5555_5557_8000),
    (0x7fff_fffd_0000, 0x7fff_ffff_f000),
];

/// The shadow of a granule: stripes of odd lengths, some of them for reads only.
fn bits(granule: u64) -> u8 {
    let inside =
        MEMORY.iter().any(|(start, end)| (start / GRANULE..end / GRANULE).contains(&granule));
    match granule % 11 {
        0 | 1 | 5 if inside => 1,
        7 if inside => 2,
        _ => 0,
    }
}

fn plan() -> Plan {
    let granules = MEMORY.iter().flat_map(|(start, end)| start / GRANULE..end / GRANULE);
    let paint = granules
        .filter(|granule| bits(*granule) != 0)
        .map(|granule| {
            let range = granule * GRANULE..(granule + 1) * GRANULE;
            Paint { range, bits: bits(granule) }
        })
        .collect();
    Plan::screening(Screen::Shadow(Shadow { reads: READS, writes: WRITES, paint }))
}

/// pc, address, size, whether it writes, shadow.
type Suspect = (u64, u64, u32, bool, u8);

#[derive(Default)]
struct Suspects {
    decoder: Decoder,
    found: Vec<Suspect>,
    calls: Vec<super::engine_log::Call>,
    malformed: bool,
}

impl Consumer for Suspects {
    fn records(&mut self, bytes: &[u8]) {
        let (found, calls) = (&mut self.found, &mut self.calls);
        let done = self.decoder.events(bytes, |event| match event {
            Event::Suspect { pc, suspicion: Suspicion::Painted { access, bits }, .. } => {
                let Access { address, size, write } = access;
                found.push((pc, address, size, write, bits));
            }
            Event::Syscall { number, arguments, answer } => calls.push((number, arguments, answer)),
            _ => {}
        });
        self.malformed |= done.is_err();
    }
}

fn engine_side(program: &Path, superblock: usize, plan: &Path) -> anyhow::Result<Suspects> {
    let mut suspects = Suspects::default();
    engine_log::observe(program, superblock, plan, &mut suspects)?;
    ensure!(!suspects.malformed, "the events are malformed");
    Ok(suspects)
}

fn reference_side(program: &Path, suspects: &Suspects) -> anyhow::Result<Vec<Suspect>> {
    let mut session = reference::launch(program, &suspects.calls)?;
    let mut expected = Vec::new();
    while let Some(step) = session.next_step()? {
        for access in &step.accesses {
            let write = access.kind == AccessKind::Write;
            let last = access.address + u64::from(access.size.max(1)) - 1;
            let granules = access.address / GRANULE..=last / GRANULE;
            let shadow = granules.fold(0, |all, granule| all | bits(granule));
            if shadow & if write { WRITES } else { READS } != 0 {
                expected.push((step.pc, access.address, access.size, write, shadow));
            }
        }
    }
    Ok(expected)
}

fn check(program: &Path, superblock: usize, plan: &Path) -> anyhow::Result<usize> {
    let suspects = engine_side(program, superblock, plan)?;
    let expected = reference_side(program, &suspects)?;
    let differs = |(theirs, native): &(&Suspect, &Suspect)| theirs != native;
    let pairs = suspects.found.iter().zip(&expected).enumerate();
    if let Some((index, (theirs, native))) = pairs.into_iter().find(|(_, pair)| differs(pair)) {
        bail!("suspect {index}: {native:x?} natively, {theirs:x?} under the engine");
    }
    let (theirs, native) = (suspects.found.len(), expected.len());
    let context = || format!("{:x?}", suspects.found.last().max(expected.last()));
    (theirs == native)
        .then_some(())
        .with_context(context)
        .with_context(|| format!("{native} suspects natively, {theirs} under the engine"))?;
    Ok(native)
}

/// Programs whose instructions all complete: the engine tells of an access before it is made.
const PROGRAMS: [&str; 14] = [
    "bit_strings.s",
    "compare_move.s",
    "computed_goto.c",
    "enter_leave.s",
    "flags.s",
    "heap.c",
    "indirect.s",
    "locked.s",
    "recursion.c",
    "selfmodify.s",
    "sse.c",
    "strings.s",
    "switch.c",
    "x87.s",
];

#[test]
fn suspects_are_just_the_accesses_to_painted_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plan.json");
    std::fs::write(&file, serde_json::to_vec(&plan()).expect("a plan")).expect("room");
    let programs = build(&PROGRAMS, folder.path());
    assert_eq!(programs.len(), PROGRAMS.len());
    let mut total = 0;
    for (index, (source, program)) in programs.iter().enumerate() {
        let superblock = if index % 3 == 0 { 5 } else { 64 };
        match check(program, superblock, &file) {
            Ok(count) => total += count,
            Err(difference) => panic!("{}, {superblock}: {difference:#}", source.display()),
        }
    }
    println!("{} programs agree, {total} suspects", programs.len());
    assert!(total > 1000);
}
