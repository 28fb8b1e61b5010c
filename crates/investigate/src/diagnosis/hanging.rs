//! The diagnosis of a program that somebody else ended: what its threads were doing, the loop that one of
//! them was in, and who holds what others wait for.

use super::{Diagnosis, Loop, Wanted, title};
use crate::case::Case;
use crate::crash::signal_name;
use crate::ending::Class;
use crate::ending::hang::{Hang, OWNER, Wait};
use crate::ending::looping::{Change, Looping};
use crate::error::fault_or_input;
use crate::sight::Sight;
use crate::slicing::{Execution, windows};
use analyze::dependence::control::Control;
use analyze::slice::Wants;
use analyze::slice::ending::{Asked, THE_WAY};
use analyze::slice::explain::{Explanation, explain};
use base::StepCount;
use base::{Address, Ending, Position, ProcessNumber, Tick, When};
use engine::host::TIME_IS_UP;
use replay::{StoppedProcess, Timeline};

/// A longer run is not followed to see who locked what.
const FOLLOWED: u64 = 20_000_000;
/// A call that has been active for less than this share of the run is not said to loop for ever, unless
/// nothing changes.
const SHARE: u64 = 4;

/// Looks at a process where it was ended.
pub fn of(
    case: &Case,
    process: u32,
    execution: Execution,
    mut line: Timeline,
    wanted: Wanted<'_>,
) -> anyhow::Result<Diagnosis> {
    let end = line.seek_end().map_err(fault_or_input)?;
    let ticks = end.at.time;
    let hang = Hang::of(case, process, &mut line, &end)?;
    let mut class = hang.class();
    let looping = match class {
        Class::EndlessLoop => Looping::of(case, process, &mut line, &end)?,
        _ => None,
    };
    if let Some(found) =
        looping.as_ref().filter(|found| matches!(found.change, Change::Values | Change::Undecided))
    {
        let long = found.since.is_some_and(|since| ticks - since.0 >= ticks / SHARE);
        class = if long { Class::EndlessLoop } else { Class::Killed };
    }
    let signal = execution.outcome.as_ref().map(|outcome| outcome.ending);
    let unknown = !matches!(signal, Some(Ending::Signal(signal)) if signal != 9);
    if unknown && matches!(class, Class::EndlessLoop) {
        class = if signal.is_some() { Class::Killed } else { Class::Cut };
    }
    let ended = sentence(case, &execution, &hang, class);
    let first = hang.threads.first();
    let place = first.and_then(|thread| thread.place.clone());
    let place = looping.as_ref().map(|found| found.place.clone()).or(place);
    let stack = first.map(|thread| thread.stack.clone()).unwrap_or_default();
    let at = Position { tick: Tick(ticks), pc: Address(end.at.thread.pc) };
    let number = first.map(|thread| thread.thread);
    let when = number.map(|thread| When { process: ProcessNumber(process), thread, position: at });
    let mut diagnosis = Diagnosis {
        class,
        ended,
        said: None,
        place,
        inside: None,
        when,
        stack,
        values: Vec::new(),
        recursion: None,
        looping: looping.as_ref().map(|found| Loop {
            since: found.since,
            change: found.change,
            in_loop: found.in_loop,
        }),
        hang: Some(hang),
        broken: Vec::new(),
        asked: Vec::new(),
        explanation: Explanation::default(),
        shown: Vec::new(),
        is_earlier: false,
        execution,
    };
    let mut sight = match looping {
        Some(found) => {
            let outcome = diagnosis.execution.outcome.take();
            diagnosis.execution = Execution { outcome, ..found.execution };
            (diagnosis.asked, diagnosis.explanation) = (vec![found.asked], found.explanation);
            Sight::through(case, line)
        }
        None if ticks <= FOLLOWED => {
            follow(&mut diagnosis, line, &end, wanted)?;
            Sight::of(case, process, ticks)?
        }
        None => Sight::through(case, line),
    };
    diagnosis.look(&mut sight)?;
    diagnosis.evaluate(&mut sight, wanted);
    Ok(diagnosis)
}

/// Follows the run to see who locked what threads wait for, or what led into the call that waits.
fn follow(
    diagnosis: &mut Diagnosis,
    line: Timeline,
    end: &StoppedProcess,
    wanted: Wanted<'_>,
) -> anyhow::Result<()> {
    diagnosis.execution.trace = windows::survey(line, wanted.memory)?;
    let execution = &diagnosis.execution;
    let last = StepCount(execution.trace.len());
    let thread = end.at.thread.number as u32;
    let mut asked = Vec::new();
    for one in diagnosis.hang.iter().flat_map(|hang| &hang.threads) {
        if let Some(Wait::Lock { name, address, holder }) = &one.waits {
            // The word itself was last changed by whoever waits; who holds it is noted by who locked it.
            let word = if holder.is_some() { address.0 + OWNER } else { address.0 };
            let wants = Wants { memory: vec![(word, 4)], ..Wants::default() };
            let words = format!("{name}, which is locked,");
            asked.push(Asked {
                thread: one.kernel_thread as u32,
                moment: last,
                wants,
                words,
                pc: None,
            });
        }
    }
    let control = Control::of(&execution.trace, &execution.program);
    if asked.is_empty() {
        let found = crate::ending::decided::decided(execution, &control, thread, last, THE_WAY);
        asked.extend(found.into_iter().flat_map(|found| found.asked));
    }
    if asked.is_empty() {
        return Ok(());
    }
    let mut explanation = explain(&execution.trace, &execution.program, &control, &asked);
    execution.number_threads(&mut explanation.view);
    (diagnosis.asked, diagnosis.explanation) = (asked, explanation);
    Ok(())
}

/// How it ended, as a sentence.
fn sentence(case: &Case, execution: &Execution, hang: &Hang, class: Class) -> String {
    let program = title::program(case, execution);
    let doing = match class {
        Class::EndlessLoop => "an endless loop",
        Class::Deadlock => "a deadlock",
        Class::Waiting => "waiting",
        _ => "running",
    };
    let threads = if hang.threads.len() > 1 { "its threads were" } else { "it was" };
    let doing = match class {
        Class::EndlessLoop => format!("it was in {doing}"),
        Class::Deadlock => format!("{threads} in {doing}"),
        _ => format!("{threads} {doing}"),
    };
    match execution.outcome.as_ref().map(|outcome| outcome.ending) {
        Some(Ending::Signal(signal)) if signal == TIME_IS_UP => {
            format!("{program} was ended when its time was up (SIGXCPU): {doing}")
        }
        Some(Ending::Signal(9)) => format!(
            "{program} was killed (SIGKILL) by somebody else; what is known ends with its last system call: {doing}"
        ),
        Some(Ending::Signal(signal)) => {
            format!(
                "{program} was ended by {}, which somebody else sent: {doing}",
                signal_name(signal)
            )
        }
        _ => format!("the recording of {program} was cut; at its last system call {doing}"),
    }
}
