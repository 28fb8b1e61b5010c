//! A **diversion**: the process leaves its log and goes on by itself, with something altered.
//!
//! Nothing is done outside. A system call gets the answer that the recorded process got, as long as its
//! thread makes the same call with the same arguments ([`recorded`]); what only asks, or is about the
//! process itself, is answered here ([`calls`], [`asking`]); what is written to standard output and error
//! is kept for the host ([`output`]); everything else is refused and noted.
//!
//! The log does not say how calls were made. So a copy of the process, the **twin**, goes on replaying, and tells the
//! arguments of each call that it makes.
//!
//! Threads run in turn, each for a fixed number of ticks, and wait for futexes and times here
//! ([`waiting`]): the recorded schedule means nothing once something has changed. Signals that came from
//! outside do not come. Time, memory and ticks are bounded.

mod asking;
mod calls;
mod output;
mod recorded;
mod waiting;

pub use calls::system_call;
pub use recorded::report_to_twin;

use super::Replayer;
use super::{contexts, control};
use crate::control::{Budget, Command, DiversionEnd, Diverted, Goal, Reply};
use crate::runner::context::Context;
use crate::runner::engine::Engine;
use crate::runner::{clock, report};
use crate::sys::{self, syscall};
use events::Plan;
use output::Output;
use recorded::{Made, Recorded, TimedOut};
use waiting::Waiting;

/// A process that has left its log.
pub struct Diversion {
    budget: Budget,
    /// Ticks and nanoseconds when it began.
    began: (u64, u64),
    /// When the running thread has had its turn.
    turn_ends: u64,
    /// Who waits, and for what.
    waiting: Waiting,
    /// What the recorded process was answered.
    recorded: Recorded,
    output: Output,
    outputs_before: u64,
    /// Bytes that have been mapped.
    mapped: u64,
    /// Calls that were answered as recorded.
    answered: u64,
    /// What was not done, and how often.
    refused: Vec<(String, u64)>,
    /// The clock of the process: nanoseconds since 1970.
    now: u64,
    /// State of the generator of numbers that stand for random ones.
    random: u64,
}

/// Ticks after which time is looked at, and another thread runs if there is one.
const TURN: u64 = 1 << 20;

/// The same where there are several threads.
const SHORT_TURN: u64 = 1 << 14;

/// Different things that are noted.
const MOST_NOTED: usize = 32;

/// Whether this process has left its log.
pub fn is_on(engine: &Engine) -> bool {
    engine.log.replayer.as_ref().is_some_and(|replayer| replayer.diversion.is_some())
}

/// Leaves the log. Comes back in the process itself and in its twin.
pub fn begin(context: &mut Context, plan: Plan, to: Goal, budget: Budget) {
    let [ours, theirs] = control::sockets();
    if control::copy(context).is_none() {
        control::close(ours);
        control::go(context, Goal::End, None);
        let socket = context.replayer().control.take();
        context.replayer().twin = Some(theirs);
        if let Some(socket) = socket {
            socket.close();
        }
        return;
    }
    control::close(theirs);
    let patches = Plan { patches: plan.patches, ..Plan::default() };
    control::go(context, to, Some(Box::new(patches)));
    contexts::leave_calls(context);
    let running = context.replayer().contexts.number();
    let date = context.replayer().recording.meta().recorded;
    let began = (clock::now(context.cpu()), nanoseconds());
    let replayer = context.replayer();
    replayer.diversion = Some(Box::new(Diversion {
        budget,
        began,
        turn_ends: 0,
        waiting: Waiting::default(),
        recorded: Recorded::new(ours, running),
        output: Output::new(),
        outputs_before: replayer.shown,
        mapped: 0,
        answered: 0,
        refused: Vec::new(),
        now: date.saturating_mul(1_000_000_000),
        random: 0x9e37_79b9_7f4a_7c15,
    }));
}

/// Lets the thread go on whose turn it is. Whether that is another one than before.
pub fn steer(context: &mut Context) -> bool {
    let parked = context.replayer().contexts.is_parked();
    let arrives = |context: &mut Context| {
        control::is_at_goal(context)
            || control::meets_place(context)
            || control::has_stepped(context)
    };
    if !parked && arrives(context) {
        stop(context);
    }
    let now = clock::now(context.cpu());
    let replayer = context.replayer();
    let diversion = replayer.diversion();
    let end = diversion.began.0 + diversion.budget.ticks;
    if now >= end {
        finish(context, DiversionEnd::Unfinished);
    }
    let mut changed = false;
    if parked || now >= diversion.turn_ends {
        check_time(context);
        changed = waiting::next(context);
        // Whose step it was has ended.
        if changed && control::has_stepped(context) {
            stop(context);
        }
        let several = context.replayer().contexts.in_turn().len() > 1;
        let turn = if several { SHORT_TURN } else { TURN };
        context.replayer().diversion().turn_ends = clock::now(context.cpu()) + turn;
    }
    let mut until = context.replayer().diversion().turn_ends.min(end);
    let now = clock::now(context.cpu());
    if let Some(goal) = control::goal(context) {
        if goal.time == now {
            context.engine().code.stop_before = goal.pc.into_iter().collect();
        }
        until = until.min(goal.time.max(now + 1));
    }
    clock::arm(context.cpu(), until.saturating_sub(now));
    if control::steps_alone(context) {
        context.engine().code.stop_before.clear();
    }
    changed
}

/// The diversion has come to its goal: says so, and does what is asked next. Comes back when it is to go on.
fn stop(context: &mut Context) {
    report_end(context, DiversionEnd::Reached);
    loop {
        match control::receive(context) {
            Some(Command::Divert { plan, to, budget }) => {
                let mut patches = plan.patches;
                patches.retain(|patch| patch.execution.is_none());
                let began = (clock::now(context.cpu()), nanoseconds());
                let diversion = context.replayer().diversion();
                (diversion.budget, diversion.began) = (budget, began);
                let plan = Plan { patches, ..Plan::default() };
                return control::go(context, to, Some(Box::new(plan)));
            }
            Some(Command::Threads) => report_threads(context),
            Some(_) => {}
            None => sys::exit_group(0),
        }
    }
}

fn report_threads(context: &mut Context) {
    let threads = Reply::Threads(contexts::data(context));
    control::send(context, &threads, None);
}

/// The diversion is over: says so, and stands still until nobody asks any more.
pub fn finish(context: &mut Context, end: DiversionEnd) -> ! {
    report_end(context, end);
    // The twin has nobody to tell any more.
    context.replayer().diversion().recorded.close();
    // Whatever else is asked has no answer here; the memory can still be read.
    while let Some(command) = control::receive(context) {
        if matches!(command, Command::Threads) {
            report_threads(context);
        }
    }
    sys::exit_group(0)
}

fn report_end(context: &mut Context, end: DiversionEnd) {
    let modules = report::modules(&context.engine().process.memory);
    let thread = contexts::running_data(context);
    let time = clock::now(context.cpu());
    let diversion = context.replayer().diversion();
    let diverted = Diverted {
        end,
        time,
        thread,
        modules,
        outputs_before: diversion.outputs_before,
        output_cut: diversion.output.is_cut(),
        answered: diversion.answered,
        refused: diversion.refused.clone(),
    };
    let output = diversion.output.descriptor();
    control::send(context, &Reply::Diverted(Box::new(diverted)), Some(output));
}

/// Ends the diversion if its time is over.
fn check_time(context: &mut Context) {
    if context.replayer().diversion().milliseconds_left() == 0 {
        finish(context, DiversionEnd::Unfinished);
    }
}

/// The recorded call that a call of a thread is, if it is among the next ones.
fn take_recorded(
    context: &mut Context,
    call: (i32, u64, [u64; 6]),
    ahead_at_most: usize,
) -> Option<Made> {
    let Replayer { source, diversion, .. } = context.replayer();
    let diversion = diversion.as_mut()?;
    let milliseconds = diversion.milliseconds_left();
    match diversion.recorded.take(source, call, ahead_at_most, milliseconds) {
        Ok(made) => made,
        Err(TimedOut) => finish(context, DiversionEnd::Unfinished),
    }
}

impl Replayer {
    fn diversion(&mut self) -> &mut Diversion {
        self.diversion.as_mut().expect("a diversion is under way")
    }
}

impl Diversion {
    fn milliseconds_left(&self) -> u64 {
        let used = nanoseconds().saturating_sub(self.began.1) / 1_000_000;
        self.budget.milliseconds.saturating_sub(used)
    }

    /// Notes something that was not done, or made up.
    fn note(&mut self, what: String) {
        if let Some((_, times)) = self.refused.iter_mut().find(|(noted, _)| *noted == what) {
            *times += 1;
        } else if self.refused.len() < MOST_NOTED {
            self.refused.push((what, 1));
        }
    }
}

/// A time of the machine's, which only bounds how long a diversion takes.
fn nanoseconds() -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes one `timespec`.
    unsafe { syscall!(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, time.as_mut_ptr()) };
    time[0] * 1_000_000_000 + time[1]
}
