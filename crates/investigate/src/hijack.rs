//! Whether control went where the program did not send it, asked of a recorded process: it is replayed with
//! all that it stored ([`analyze::hijack`]), once to see where control left its way and, if that was through
//! a pointer, once more to see who wrote that.

use crate::check::recorded::mapped;
use crate::crash::jump_that_failed;
use crate::error::fault_or_input;
use crate::functions;
use crate::program::program_of;
use crate::threads::Threads;
use analyze::hijack::{self, Hijack, Jumps, Overwritten, Transfers};
use analyze::rules::machine::chains::Stamp;
use base::{CrashReport, Finding, ModuleMap, ProcessNumber, When};
use events::Consumer;
use replay::{Session, Shown};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

const SET: [&str; 3] = ["setjmp", "_setjmp", "__sigsetjmp"];
const JUMP: [&str; 4] = ["longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"];

/// How the last instruction of a process failed to go on, where that is what ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// It came to an address where no code is.
    At(u64),
    /// A return found this where it stands.
    Return {
        /// Where.
        slot: u64,
        /// What.
        target: u64,
    },
    /// It used the frame pointer.
    FramePointer,
}

/// What led the control of a process astray; `crash` is how it ended, if that was by a signal.
pub fn findings(
    session: &Session,
    process: u32,
    crash: Option<&CrashReport>,
) -> anyhow::Result<Vec<Finding>> {
    let maps = mapped(session, process)?;
    let transfers = follow(session, process, Transfers::new(jumps(&maps)))?;
    let mut hijacks = transfers.found.clone();
    if let Some(failed) = crash.and_then(jump_that_failed).filter(|_| hijacks.is_empty()) {
        hijacks.extend(at_end(session, process, &transfers, failed)?);
    }
    let program = program_of(&maps);
    let mut told = BTreeSet::new();
    let threads = Threads::of(session.recording(), process);
    let when = |stamp: Stamp| {
        let thread = threads.number(stamp.thread as i32, stamp.position.tick);
        Some(When { process: ProcessNumber(process), thread, position: stamp.position })
    };
    let mut findings: Vec<Finding> = hijacks
        .iter()
        .filter_map(|hijack| hijack::report::finding(hijack, &program, &when))
        .collect();
    // What comes after the first is where that led.
    findings.truncate(1);
    findings.retain(|finding| told.insert((finding.kind.clone(), finding.title.clone())));
    Ok(findings)
}

/// What the end of a process tells.
fn at_end(
    session: &Session,
    process: u32,
    transfers: &Transfers,
    failed: Failed,
) -> anyhow::Result<Option<Hijack>> {
    let target = match failed {
        Failed::Return { slot, target } => return Ok(transfers.return_at(slot, target)),
        Failed::FramePointer => return Ok(transfers.frame_pointer()),
        Failed::At(target) => target,
    };
    let Some(place) = transfers.source_of(target) else { return Ok(None) };
    let written = follow(session, process, Transfers::watching(place..place + 8))?.written;
    let (pc, callers) = transfers.last();
    let what = Overwritten::Pointer { target };
    Ok(written.map(|write| Hijack { what, place, pc, callers, write }))
}

/// Replays a process for a follower.
fn follow(session: &Session, process: u32, transfers: Transfers) -> anyhow::Result<Transfers> {
    let shared = Arc::new(Mutex::new(transfers));
    let mut consumer: Option<Box<dyn Consumer>> = Some(Box::new(Lent(Arc::clone(&shared))));
    let mut make = |_| consumer.take().unwrap_or_else(|| Box::new(events::Discard::default()));
    session.replay(process, hijack::plan(), Shown::Nothing, &mut make).map_err(fault_or_input)?;
    let followed = std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(followed)
}

/// A follower that is wanted back.
struct Lent(Arc<Mutex<Transfers>>);

impl Consumer for Lent {
    fn records(&mut self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).records(bytes);
    }
}

/// Where the functions are that jump out of calls.
fn jumps(maps: &[ModuleMap]) -> Jumps {
    let names: Vec<String> = SET.iter().chain(&JUMP).map(|name| (*name).to_owned()).collect();
    let mut jumps = Jumps::default();
    for map in maps {
        for (address, name) in functions::in_map(map, &names) {
            if SET.contains(&name.as_str()) {
                jumps.set.push(address);
            } else {
                jumps.jump.push(address);
            }
        }
    }
    jumps
}
