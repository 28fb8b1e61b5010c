//! **Replay**: runs a recorded process again, from its log alone. Whatever came from outside then
//! comes from the log now; no system call of the guest's is made, except to arrange memory.
//!
//! All guest threads are contexts of one kernel thread: the log says which runs, so nothing is ever
//! waited for, and a `fork` of the runner is a checkpoint.
//!
//! At every entry the state is compared with what was recorded. The first difference ends the
//! replay with a report of where it was; a replay never goes on with a guess.
//!
//! * [`begin`] builds the process as the log says it was; [`memory`] arranges its address space;
//! * [`calls`] gives system calls their recorded answers;
//! * [`contexts`] are the threads; [`source`] reads the log; [`control`] is asked from outside,
//!   and [`extract`] cuts a region out; [`skip`] stands in for what a log leaves out;
//! * [`diversion`] leaves the log for good and goes on with something altered.

mod begin;
mod calls;
mod contexts;
mod control;
mod diversion;
mod extract;
mod memory;
mod skip;
mod source;

pub use begin::start;
pub use calls::system_call;

use super::context::Context;
use super::engine::Engine;
use super::engine::dispatch::{self, CameBy};
use super::record;
use super::signal::{SignalInfo, deliver, is_fault};
use super::{clock, report};
use crate::control::{DiversionEnd, Instant};
use crate::report::{Divergence, Message, ProcessReplay, Replayed};
use crate::sys;
use contexts::Contexts;
use control::Control;
use diversion::Diversion;
use memory::Files;
use recording::log::{Call, Ending, Entry, Position, SignalData};
use recording::{Origin, ProcessStart, Recording};
use source::Source;

/// A replay under way.
pub struct Replayer {
    source: Source,
    contexts: Contexts,
    files: Files,
    recording: Recording,
    /// Processes still to become, the next one first.
    path: Vec<u32>,
    /// The process that this is.
    process: u32,
    /// Whether the children of the last one are replayed too, and which of them have been.
    tree: bool,
    begun: Vec<u32>,
    checks: u64,
    /// Number of the system call that was answered last.
    last_call: u64,
    outputs: Option<[i32; 2]>,
    /// Outputs of the process so far.
    shown: u64,
    control: Option<Control>,
    /// What the process does by itself, if it has left the log.
    diversion: Option<Box<Diversion>>,
    /// Where a diversion learns from this process how calls were made.
    twin: Option<i32>,
}

impl Replayer {
    /// If a child of that number is the process to become next: which it is in the recording.
    fn becomes(&mut self, pid: i32) -> Option<u32> {
        let next = *self.path.first()?;
        let start = self.recording.processes().iter().find(|start| start.process == next)?;
        (start.number.unwrap_or(start.pid) == pid).then(|| self.path.remove(0))
    }

    /// If all children are replayed: which one in the recording the next child of that number is.
    fn child(&mut self, pid: i32) -> Option<u32> {
        if !self.tree || !self.path.is_empty() {
            return None;
        }
        let (recording, begun, parent) = (&self.recording, &self.begun, self.process);
        let is_it = |start: &&ProcessStart| {
            let forked =
                matches!(start.origin, Origin::Fork { .. }) && start.parent == Some(parent);
            forked && start.number.unwrap_or(start.pid) == pid && !begun.contains(&start.process)
        };
        let process = recording.processes().iter().find(is_it)?.process;
        self.begun.push(process);
        self.recording.has_begun(process).then_some(process)
    }
}

/// Whether memory that nobody has written holds something else than it did, so that state may differ.
fn is_poisoned(engine: &Engine) -> bool {
    engine.config.plan.poisons()
}

/// Further than any process will come.
const NEVER: u64 = 1 << 60;

/// How many ticks late a system call may be until it is missed. One would do; but cells of a short
/// countdown run out all the time, and a call that never comes is missed soon enough.
const LATE: u64 = 1 << 12;

/// Runs until the log ends.
fn run(context: &mut Context) -> ! {
    let mut came_by = CameBy::Elsewhere;
    loop {
        let mut acted = !diversion::is_on(context.engine()) && steer(context);
        // It may have left the log just now: where that is to lead counts from its first instruction on.
        if diversion::is_on(context.engine()) {
            acted |= diversion::steer(context);
        }
        if acted {
            came_by = CameBy::Elsewhere;
        }
        came_by = dispatch::step(context, came_by);
    }
}

/// Does what the log says happens here, and sets how far the running thread may go. Whether
/// anything was done.
fn steer(context: &mut Context) -> bool {
    let mut acted = false;
    loop {
        if control::is_at_goal(context) {
            control::stop(context, None, None);
            acted = true;
            if diversion::is_on(context.engine()) {
                return acted;
            }
            continue;
        }
        let parked = context.replayer().contexts.is_parked();
        match next(context, parked) {
            Next::Done => acted = true,
            Next::Run(until) => {
                if control::meets_place(context) || control::has_stepped(context) {
                    control::stop(context, None, None);
                    acted = true;
                    if diversion::is_on(context.engine()) {
                        return acted;
                    }
                    continue;
                }
                set_course(context, until);
                return acted;
            }
        }
    }
}

/// What comes next in a replay.
enum Next {
    /// Something of the log has been done.
    Done,
    /// The running thread goes on, at most until then.
    Run(Instant),
}

fn next(context: &mut Context, parked: bool) -> Next {
    let until = |time: u64| Next::Run(Instant { time, pc: None });
    match context.replayer().source.peek() {
        None => finish(context, None),
        Some(Entry::Switch { thread, .. }) if parked => {
            let thread = *thread;
            context.replayer().source.take();
            contexts::switch(context, thread);
        }
        Some(Entry::Others { at: None, .. } | Entry::Cut { .. }) if parked => {
            calls::others_wrote(context)
        }
        Some(Entry::Call(_)) if parked => calls::complete_parked(context),
        Some(Entry::Exec) if parked => calls::executes(context),
        _ if parked => {
            diverge(context, "the running thread waits, but the recording goes on with it")
        }
        Some(
            entry @ (Entry::Stop(_)
            | Entry::Signal { .. }
            | Entry::Others { at: Some(_), .. }
            | Entry::Skip(_)),
        ) => {
            let at = match entry {
                Entry::Stop(at) | Entry::Signal { at, .. } => *at,
                Entry::Others { at, .. } => at.unwrap_or_default(),
                Entry::Skip(skip) => skip.at,
                _ => Position::default(),
            };
            let (now, pc) = (clock::now(context.cpu()), context.cpu().registers.pc);
            if now > at.time {
                let (place, time) = (at.pc, at.time);
                diverge(
                    context,
                    &format!("went past {place:#x} at tick {time}, where it was interrupted"),
                );
            }
            if (now, pc) != (at.time, at.pc) {
                return Next::Run(Instant { time: at.time, pc: Some(at.pc) });
            }
            reached(context, at);
        }
        Some(Entry::Switch { time, .. } | Entry::Call(Call { time, .. })) => {
            let time = *time;
            if clock::now(context.cpu()) > time {
                diverge(
                    context,
                    &format!("went on, past tick {time}, the time of its next system call"),
                );
            }
            return until(time + LATE);
        }
        Some(_) => return until(clock::now(context.cpu()) + NEVER),
    }
    Next::Done
}

/// Lets the running thread go to `until` or to the goal, whichever comes first.
fn set_course(context: &mut Context, until: Instant) {
    let now = clock::now(context.cpu());
    let targets = [Some(until), control::goal(context)];
    let nearest = targets.iter().flatten().map(|target| target.time).min().unwrap_or(now);
    if control::steps_alone(context) {
        clock::arm(context.cpu(), nearest.max(now + 1) - now);
        return;
    }
    if nearest > now {
        clock::arm(context.cpu(), nearest - now);
        return;
    }
    clock::arm(context.cpu(), 1);
    let here = targets.iter().flatten().filter(|target| target.time == now);
    context.engine().code.stop_before = here.filter_map(|target| target.pc).collect();
}

/// The running thread is where something happened to it.
fn reached(context: &mut Context, at: Position) {
    let here = record::position(context.engine());
    if here.check != at.check && !is_poisoned(context.engine()) {
        diverge(context, "registers or stack differ where the thread was interrupted");
    }
    context.replayer().checks += 1;
    match context.replayer().source.take() {
        Some(Entry::Signal { info, .. }) => {
            deliver::handle(context, &signal_info(&info));
        }
        Some(Entry::Others { writes, .. }) => calls::write_payload(context, &writes),
        Some(Entry::Skip(skip)) => skip::make_up(context, &skip),
        _ => match context.replayer().source.peek() {
            Some(Entry::Switch { .. } | Entry::Others { at: None, .. }) => {
                context.replayer().contexts.park();
            }
            Some(Entry::End(ending)) => {
                let ending = *ending;
                report_sent(context, ending);
                finish(context, Some(ending))
            }
            None => finish(context, None),
            _ => diverge(context, "a thread stopped, and nobody ran instead"),
        },
    }
}

/// A process that was ended by a signal of the kind that crashes send, but which no instruction
/// raised, is reported like one that crashed.
fn report_sent(context: &mut Context, ending: Ending) {
    if let Ending::Signal(signal) = ending
        && (is_fault(signal) || signal == libc::SIGABRT)
    {
        const SI_TKILL: i32 = -6;
        const SENDING: [i64; 6] = [
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_tgkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_pidfd_send_signal,
        ];
        // The recording does not say who has sent it: the process itself, if that was the last
        // thing it did.
        let itself = SENDING.contains(&(context.replayer().last_call as i64));
        let sender = if itself { sys::getpid() as u64 } else { 0 };
        let info = SignalInfo::fault(signal, SI_TKILL, sender, (0, 0));
        let (engine, thread) = context.parts();
        report::crash(&info, &engine.cpu.registers, thread, engine);
    }
}

fn signal_info(data: &SignalData) -> SignalInfo {
    let mut raw = [0; 128];
    let length = data.raw.len().min(raw.len());
    raw[..length].copy_from_slice(&data.raw[..length]);
    SignalInfo { raw, trap: data.trap, cr2: data.cr2 }
}

/// Whether instructions that ask the processor are answered by the log.
pub fn answers(engine: &Engine) -> bool {
    engine.log.replayer.is_some() && !diversion::is_on(engine)
}

/// An instruction whose answer is in the log.
pub fn answer(context: &mut Context, next: u64) {
    match context.replayer().source.take() {
        Some(Entry::Answer { registers, flags }) => {
            let guest = &mut context.cpu().registers;
            for (register, value) in registers {
                if let Some(slot) = guest.general.get_mut(register as usize) {
                    *slot = value;
                }
            }
            guest.flags = flags;
            guest.pc = next;
        }
        _ => diverge(context, "asked the processor for something that it did not ask for then"),
    }
}

/// Whether the signal that the guest has raised was taken away by a tracer; then it goes on as that wanted.
pub fn was_taken_away(engine: &mut Engine) -> bool {
    if diversion::is_on(engine) {
        return false;
    }
    let Engine { log, cpu, .. } = engine;
    let Some(replayer) = &mut log.replayer else { return false };
    let Some(Entry::Answer { registers, flags }) = replayer.source.peek() else { return false };
    for (register, value) in registers {
        match cpu.registers.general.get_mut(*register as usize) {
            Some(slot) => *slot = *value,
            None => cpu.registers.pc = *value,
        }
    }
    cpu.registers.flags = *flags;
    replayer.source.take();
    true
}

/// The guest dies of a signal that its own code raised.
pub fn died(context: &mut Context, signal: i32) -> ! {
    if diversion::is_on(context.engine()) {
        diversion::finish(context, DiversionEnd::Ended(Ending::Signal(signal)));
    }
    match context.replayer().source.peek() {
        Some(Entry::End(Ending::Signal(recorded))) if *recorded == signal => {
            finish(context, Some(Ending::Signal(signal)))
        }
        _ => diverge(context, &format!("died of signal {signal}, which it did not then")),
    }
}

/// The log has been replayed.
fn finish(context: &mut Context, ending: Option<Ending>) -> ! {
    end(context, ending, None)
}

/// The replay is not what was recorded.
fn diverge(context: &mut Context, what: &str) -> ! {
    if diversion::is_on(context.engine()) {
        diversion::finish(context, DiversionEnd::Lost(what.to_owned()));
    }
    let expected = context.replayer().source.describe();
    let divergence = Divergence {
        what: format!("{what}; the recording has {expected}"),
        thread: context.replayer().contexts.number(),
        time: clock::now(context.cpu()),
        pc: context.cpu().registers.pc,
    };
    end(context, None, Some(divergence))
}

fn end(context: &mut Context, ending: Option<Ending>, divergence: Option<Divergence>) -> ! {
    if context.replayer().twin.is_some() {
        sys::exit_group(0);
    }
    while context.replayer().control.is_some() {
        control::stop(context, Some(ending), divergence.clone());
    }
    context.engine().finish_events();
    let replayed = Replayed {
        divergence,
        ending,
        time: clock::now(context.cpu()),
        checks: context.replayer().checks,
        entries: context.replayer().source.taken(),
    };
    // On the way to a process it is that one's replay.
    let process = context.replayer().path.last().copied().unwrap_or(context.replayer().process);
    let runner = sys::getpid();
    report::send(&Message::Replayed(ProcessReplay { process, runner, replayed }));
    sys::exit_group(0)
}
