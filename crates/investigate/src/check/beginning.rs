//! The beginning of a recorded process, followed in full: short runs are over before it ends, and are then
//! checked as if everything had been asked for. How much that is, is a number of ticks, not a time, so that
//! two runs of a program are checked alike.

use super::choose::Chosen;
use super::coverage::Followed;
use super::findings::RuleFindings;
use super::leaks::{self, Exited};
use super::recorded::{begin, mapped};
use super::watch::{Located, Watch, fault};
use super::windows::Carrier;
use crate::error::fault_or_input;
use crate::notices::Notices;
use analyze::rules::stream::Stream;
use anyhow::Context;
use base::{CrashReport, Ending};
use engine::host::RunError;
use events::Consumer;
use recording::ProcessStart;
use replay::{Instant, Session};
use std::sync::{Arc, Mutex, PoisonError};

/// Ticks of all processes together that are followed, if nobody says otherwise: some four million
/// instructions. Following costs two to three times what memcheck costs, so of a run that is just longer the
/// beginning has to be cheap: with this a start of python3 takes 0.97 s of processor time, with four times as
/// many 2.15 s, under memcheck 1.80 s.
pub const TICKS: u64 = 1 << 18;

/// What following the beginning of a process came to.
pub struct Beginning {
    /// What rules found.
    pub found: RuleFindings,
    /// How much of the process that was.
    pub followed: Followed,
}

/// Follows at most so many ticks of a process from its beginning.
pub fn follow(
    session: &Session,
    start: &ProcessStart,
    crash: Option<&CrashReport>,
    (chosen, ticks): (&Chosen, u64),
    notices: &Notices,
) -> anyhow::Result<Beginning> {
    let process = start.process;
    let (followed_rules, listed) = leaks::split(chosen);
    let watch = Watch::new(&followed_rules);
    let (plan, detector, modules) = watch.prepared(&mapped(session, process)?);
    let first = begin(session, process)?;
    let mut stream = Stream::new(detector);
    stream.begin_at(first);
    let mut line = session.timeline(process).map_err(fault_or_input)?;
    let mut here = line.begin().map_err(fault_or_input)?;
    let back = Arc::new(Mutex::new(None));
    let carrier = Carrier::new(stream, &back);
    let to = Instant { time: first.0.saturating_add(ticks), pc: None };
    let diverged = match line.observe_on(&mut here, Some(to), plan, Box::new(carrier)) {
        Ok(()) => None,
        Err(RunError::Diverged(divergence)) => Some(divergence),
        Err(error) => return Err(fault_or_input(error)),
    };
    let stream = back.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut stream: Stream = stream.context("the replay has not given back what it was to tell")?;
    let whole = here.at.ended && diverged.is_none();
    let located = Located::of(session.recording(), process);
    let mut found = RuleFindings::default();
    if whole && matches!(here.at.ending, Some(Ending::Exit(_))) {
        let (machine, program) = (&stream.detector().machine, modules.program());
        let exited = Exited { machine, standing: &here, program: &program, located: &located };
        found.extend(leaks::look(session, (process, start.pid), &exited, (chosen, listed))?);
    }
    if whole {
        stream.end();
        if let Some(crash) = crash {
            fault(&mut stream, crash);
        }
    }
    found.add_stream(start.pid, &stream, (&modules, &chosen.suppressions), Some(&located));
    if chosen.rules.iter().all(|rule| rule.name != leaks::FOLLOWS) {
        found.forget(leaks::FOLLOWS);
    }
    if let Some(divergence) = diverged {
        notices.tell(&format!(
            "the replay diverged from the recording, and what came after is not checked: {}",
            divergence.what
        ));
        found.unfollowed = true;
    }
    let until = here.at.time;
    let followed = Followed {
        process,
        pid: start.pid,
        instructions: stream.detector().machine.time,
        ticks: until.saturating_sub(first.0),
        until,
        whole,
    };
    Ok(Beginning { found, followed })
}
