//! From a moment as a person writes it (`base::moment`) to a process that stands there. The one resolver
//! behind every command that takes a moment of a recording.

use crate::case::Case;
use crate::error::fault_or_input;
use crate::program::executable;
use crate::threads::Threads;
use anyhow::{Context, bail, ensure};
use base::moment::Instant as Written;
use base::{Ending, Moment, Nth, PlaceName, Tick};
use engine::config::Point;
use replay::{Instant, StoppedProcess, Timeline};
use std::ffi::OsStr;
use symbols::Program;

/// The code that a place means: where each of its pieces begins, in every inlined and templated copy.
pub fn addresses(program: &Program, place: &PlaceName) -> anyhow::Result<Vec<u64>> {
    let found = program.resolve(place)?;
    Ok(found.iter().map(|location| location.address.0).collect())
}

/// The kernel's id of the thread that a moment is limited to.
pub fn thread_of(moment: &Moment, threads: &Threads) -> anyhow::Result<Option<i32>> {
    let Some(number) = moment.thread else { return Ok(None) };
    let known = threads.kernel(number).with_context(|| match threads.count() {
        1 => format!("there is no thread /{number}: the process has only one"),
        count => format!("there is no thread /{number}: the process has {count}"),
    })?;
    Ok(Some(known))
}

/// What to say of a place that was not executed as often as it would have to be.
pub fn not_executed(moment: &Moment, place: &PlaceName, times: u64) -> anyhow::Error {
    let by = moment.thread.map_or_else(String::new, |thread| format!(" by thread {thread}"));
    match times {
        0 => anyhow::anyhow!("{place} was never executed{by}"),
        1 => anyhow::anyhow!("{place} was executed once{by}, so there is no {moment}"),
        times => {
            anyhow::anyhow!("{place} was executed {times} times{by}, so there is no {moment}")
        }
    }
}

/// What to say where a crash is asked for and there is none.
pub const NO_CRASH: &str = "the program did not crash; `end` means its end";

/// Goes to a moment of a process.
pub fn seek(
    case: &Case,
    process: u32,
    line: &mut Timeline,
    moment: &Moment,
) -> anyhow::Result<StoppedProcess> {
    let thread = thread_of(moment, &Threads::of(case.recording(), process))?;
    let standing = match &moment.instant {
        Written::Start => line.begin().map_err(fault_or_input)?,
        Written::End => line.seek_end().map_err(fault_or_input)?,
        Written::Crash => {
            let end = line.seek_end().map_err(fault_or_input)?;
            ensure!(matches!(end.at.ending, Some(Ending::Signal(_))), NO_CRASH);
            end
        }
        Written::Tick(tick) => seek_tick(line, *tick, None)?,
        Written::Position(at) => {
            let standing = seek_tick(line, at.tick, Some(at.pc.0))?;
            let there = standing.instant();
            ensure!(
                there == Instant { time: at.tick.0, pc: Some(at.pc.0) },
                "nothing is executed at {at}; at {} there is {:#x}",
                at.tick,
                standing.at.thread.pc
            );
            standing
        }
        Written::Place(place, nth) => {
            return seek_place(case, line, moment, (place, *nth), thread);
        }
    };
    if thread.is_some_and(|thread| thread != standing.at.thread.number) {
        bail!("another thread runs at {}; say PLACE#N/THREAD", Tick(standing.at.time));
    }
    Ok(standing)
}

fn seek_tick(line: &mut Timeline, tick: Tick, pc: Option<u64>) -> anyhow::Result<StoppedProcess> {
    let end = Tick(line.end().map_err(fault_or_input)?.time);
    ensure!(tick <= end, "the recording ends at {end}, there is no {tick}");
    line.seek(Instant { time: tick.0, pc }).map_err(fault_or_input)
}

fn seek_place(
    case: &Case,
    line: &mut Timeline,
    moment: &Moment,
    (place, nth): (&PlaceName, Nth),
    thread: Option<i32>,
) -> anyhow::Result<StoppedProcess> {
    let modules = line.end().map_err(fault_or_input)?.modules.clone();
    let pcs = addresses(&case.program(&modules)?, place)?;
    let count = match nth {
        Nth::Number(count) => count,
        Nth::FromEnd(back) => {
            let times = line.count_hits(&pcs, thread).map_err(fault_or_input)?;
            let first = times.checked_sub(back).map(|before| before + 1);
            first.ok_or_else(|| not_executed(moment, place, times))?
        }
    };
    let found = line.seek_hit(&pcs, thread, count).map_err(fault_or_input)?;
    if found.at.hits < count {
        return Err(not_executed(moment, place, found.at.hits));
    }
    Ok(found)
}

/// The beginning or end of a region of a program that has not been started yet. There a place by itself
/// means its first execution: the last is not known before the end.
pub fn point(text: &str, program: &OsStr) -> anyhow::Result<Point> {
    let counted = text.contains('#') || text.starts_with('@');
    let moment: Moment = if counted { text.parse() } else { format!("{text}#1").parse() }?;
    ensure!(moment.thread.is_none(), "a region begins and ends in whichever thread comes first");
    match moment.instant {
        Written::Tick(tick) => Ok(Point::Ticks(tick.0)),
        Written::Place(place, Nth::Number(count)) => {
            let pcs = addresses(&executable(program)?, &place)?;
            let [pc] = pcs[..] else {
                let each: Vec<String> = pcs.iter().map(|pc| format!("*{pc:#x}")).collect();
                bail!("{place} means {} pieces of code; say which: {}", each.len(), each.join(", "))
            };
            Ok(Point::Place { pc, count })
        }
        _ => bail!("a region begins and ends at PLACE, PLACE#N or @T: the rest is not known yet"),
    }
}
