//! Asked from outside: runs to moments, leaves checkpoints.

use super::{contexts, diversion, extract};
use crate::control::{Command, Goal, Instant, MOST_THREADS, Reply, Stopped};
use crate::report::Divergence;
use crate::runner::context::Context;
use crate::runner::engine::Engine;
use crate::runner::events::Ring;
use crate::runner::numbers::Numbers;
use crate::runner::{arena, clock, record, report, start};
use crate::sys::{self, syscall};
use events::Plan;
use events::condition::{self, Sight};
use recording::log::{Ending, ThreadData};
use std::mem::{size_of, zeroed};

/// What is asked of this process.
pub struct Control {
    socket: i32,
    /// Where to stop.
    pub goal: Goal,
    /// How often the instruction of the goal was met.
    pub hits: u64,
    /// Whether the instruction at this moment has been counted.
    counted: Option<(u64, u64, i32)>,
}

/// Longest message.
const LONGEST: usize = 4 << 20;

impl Control {
    /// Asked through a socket.
    pub fn new(socket: i32) -> Self {
        Self { socket, goal: Goal::End, hits: 0, counted: None }
    }

    /// Nobody is to ask any more.
    pub fn close(self) {
        close(self.socket);
    }
}

/// Whether the goal is a moment, and this is it or a later one.
pub fn is_at_goal(context: &mut Context) -> bool {
    let Some(Instant { time, pc }) = goal(context) else { return false };
    let now = clock::now(context.cpu());
    now > time || now == time && pc.is_none_or(|pc| pc == context.cpu().registers.pc)
}

/// Whether the running thread is about to execute the instruction of the goal for the last time
/// that counts. Counts how often it does.
pub fn meets_place(context: &mut Context) -> bool {
    let here = here(context);
    let Some(control) = &mut context.replayer().control else { return false };
    let Goal::Hit { pcs, thread, count, conditions, .. } = &control.goal else { return false };
    let meant = pcs.binary_search(&here.1).is_ok() && thread.is_none_or(|it| it == here.2);
    if !meant || control.counted == Some(here) {
        return false;
    }
    control.counted = Some(here);
    let (count, conditional) = (*count, !conditions.is_empty());
    if conditional && !holds(context, here.1) {
        return false;
    }
    let Some(control) = &mut context.replayer().control else { return false };
    control.hits += 1;
    control.hits == count
}

/// Whether one of the conditions of the instruction that is next holds, or it has none.
fn holds(context: &mut Context, pc: u64) -> bool {
    let engine = context.engine();
    let control = engine.log.replayer.as_ref().and_then(|replayer| replayer.control.as_ref());
    let Some(Control { goal: Goal::Hit { conditions, .. }, .. }) = control else { return true };
    let sight = Here(engine);
    let mut own = conditions.iter().filter(|(at, _)| *at == pc).map(|(_, it)| it).peekable();
    own.peek().is_none() || own.any(|condition| condition.holds(&sight))
}

/// The running thread as a condition sees it.
struct Here<'a>(&'a Engine);

impl Sight for Here<'_> {
    fn register(&self, number: u16) -> Option<u64> {
        let registers = &self.0.cpu.registers;
        condition::register(number, &registers.general, registers.pc)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.0.look(address, into)
    }
}

/// Whether the thread of the goal has made its step, or can make none any more. Counts its instructions.
pub fn has_stepped(context: &mut Context) -> bool {
    let here = here(context);
    let (control, lives) = match stepping_thread(context) {
        Some(thread) => {
            let lives = context.replayer().contexts.has(thread);
            (context.replayer().control.as_mut(), lives)
        }
        None => return false,
    };
    let Some(Control { goal: Goal::Step { thread, within, stops, .. }, counted, hits, .. }) =
        control
    else {
        return false;
    };
    if here.2 != *thread {
        return !lives;
    }
    // The first time that it runs it is about to make the step.
    if counted.is_none_or(|before| before == here) {
        *counted = Some(here);
        return false;
    }
    *counted = Some(here);
    *hits += 1;
    !within.contains(&here.1) || stops.contains(&here.1)
}

/// The thread whose step is the goal.
fn stepping_thread(context: &mut Context) -> Option<i32> {
    match context.replayer().control.as_ref()?.goal {
        Goal::Step { thread, .. } => Some(thread),
        _ => None,
    }
}

/// The running thread executes its next instruction alone if it is its step that is the goal. Whether that is so.
pub fn steps_alone(context: &mut Context) -> bool {
    let steps = stepping_thread(context) == Some(context.replayer().contexts.number());
    if steps {
        context.engine().code.alone = Some(context.cpu().registers.pc);
    }
    steps
}

/// Ticks, next instruction and thread. Two threads can stand at the same place at the same tick.
fn here(context: &mut Context) -> (u64, u64, i32) {
    (clock::now(context.cpu()), context.cpu().registers.pc, context.replayer().contexts.number())
}

/// The time and the address that the goal lies at, if it has them.
pub fn goal(context: &mut Context) -> Option<Instant> {
    match context.replayer().control.as_ref()?.goal {
        Goal::At(instant) => Some(instant),
        Goal::Hit { until, .. } | Goal::Step { until, .. } => until,
        Goal::End => None,
    }
}

/// The process stands still: says so, and does what is asked next. Comes back when it is to run.
pub fn stop(context: &mut Context, end: Option<Option<Ending>>, divergence: Option<Divergence>) {
    if context.engine().observed.ring.is_some() {
        context.engine().set_plan(no_events());
        context.engine().finish_events();
        context.engine().observed.ring = None;
    }
    extract::end(context, end.is_some());
    let mut reported = false;
    loop {
        if !std::mem::replace(&mut reported, true) {
            report_stop(context, end, divergence.clone());
        }
        match receive(context) {
            Some(Command::Run { to, plan }) if end.is_none() && divergence.is_none() => {
                return go(context, to, plan);
            }
            Some(Command::Extract { to }) if end.is_none() && divergence.is_none() => {
                extract::begin(context);
                return go(context, to, None);
            }
            Some(Command::Divert { plan, to, budget }) if end.is_none() && divergence.is_none() => {
                return diversion::begin(context, *plan, to, budget);
            }
            Some(
                Command::Run { .. }
                | Command::Extract { .. }
                | Command::Divert { .. }
                | Command::Where,
            ) => reported = false,
            Some(Command::Checkpoint) => checkpoint(context),
            Some(Command::Threads) => {
                let threads = Reply::Threads(contexts::data(context));
                send(context, &threads, None);
            }
            None => sys::exit_group(0),
        }
    }
}

fn no_events() -> Plan {
    Plan::default().with_ticks(true)
}

pub fn go(context: &mut Context, to: Goal, plan: Option<Box<Plan>>) {
    let plan = plan.map_or_else(no_events, |plan| plan.with_ticks(true));
    if plan.emits() {
        let engine = context.engine();
        let (rings, process) = (engine.config.rings, engine.process.numbers.host);
        engine.observed.ring = Ring::new(&mut engine.cpu, rings, process, None).ok();
        // A consumer of its own, which knows no shapes yet.
        engine.code.cache.flush();
    }
    let places: Vec<u64> = match &to {
        Goal::Hit { pcs, .. } => pcs.clone(),
        _ => Vec::new(),
    };
    let engine = context.engine();
    if plan != engine.config.plan || plan.emits() || engine.observed.stops.watched() != places {
        engine.observed.stops.watch(places);
        engine.set_plan(plan);
    }
    let running = context.replayer().contexts.number();
    context.engine().record_thread(running);
    let here = here(context);
    let runs = !context.replayer().contexts.is_parked();
    let stands = match &to {
        Goal::Step { thread, .. } => runs && *thread == here.2,
        _ => true,
    };
    if let Some(control) = &mut context.replayer().control {
        // Where it stands now has been met before it stood still.
        control.counted = stands.then_some(here);
        (control.goal, control.hits) = (to, 0);
    }
}

fn report_stop(context: &mut Context, end: Option<Option<Ending>>, divergence: Option<Divergence>) {
    let thread = contexts::running_data(context);
    let stopped = Stopped {
        process: sys::getpid(),
        time: clock::now(context.cpu()),
        thread,
        check: record::position(context.engine()).check,
        hits: context.replayer().control.as_ref().map_or(0, |control| control.hits),
        ended: end.is_some(),
        ending: end.flatten(),
        divergence,
        modules: report::modules(&context.engine().process.memory),
        threads: if end.is_some() { all_threads(context) } else { Vec::new() },
    };
    send(context, &Reply::Stopped(Box::new(stopped)), None);
}

/// What there is to say of all threads in one message.
fn all_threads(context: &mut Context) -> Vec<ThreadData> {
    let mut threads = contexts::data(context);
    threads.truncate(MOST_THREADS);
    threads.iter_mut().for_each(|thread| thread.vector = Vec::new());
    threads
}

/// Leaves a copy behind. Original and copy go on waiting to be asked.
fn checkpoint(context: &mut Context) {
    let pair = sockets();
    let Some(process) = copy(context) else {
        close(pair[0]);
        if let Some(control) = &mut context.replayer().control {
            close(std::mem::replace(&mut control.socket, pair[1]));
        }
        return;
    };
    close(pair[1]);
    send(context, &Reply::Checkpoint { process }, Some(pair[0]));
    close(pair[0]);
}

/// Makes a copy of this process and waits until it has ended. Whether this is the copy.
pub fn branches(context: &mut Context) -> bool {
    let Some(process) = copy(context) else { return true };
    // SAFETY: the kernel writes nothing, as no status is asked for. How children end is ignored, so it
    // waits until there are none.
    unsafe { syscall!(libc::SYS_wait4, process, 0, 0, 0) };
    false
}

/// Makes a copy of this process: its number; nothing in the copy.
pub fn copy(context: &mut Context) -> Option<i32> {
    // SAFETY: the child has its own copy of everything, and is the only thread in it as this one is here.
    let child = unsafe { syscall!(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    if child != 0 {
        return Some(child as i32);
    }
    arena::after_fork();
    context.engine().process.numbers = Numbers::of_this(context.engine().config.proc);
    start::follow_host(&context.engine().config);
    super::memory::unshare(context);
    None
}

/// Two sockets that are connected with each other, and keep messages apart.
pub fn sockets() -> [i32; 2] {
    let mut pair = [-1; 2];
    // SAFETY: the kernel writes two descriptors.
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        syscall!(libc::SYS_socketpair, libc::AF_UNIX, kind, 0, pair.as_mut_ptr());
    }
    pair
}

/// Closes a descriptor of ours.
pub fn close(descriptor: i32) {
    // SAFETY: a descriptor of ours.
    unsafe { syscall!(libc::SYS_close, descriptor) };
}

fn socket(context: &mut Context) -> i32 {
    context.replayer().control.as_ref().map_or(-1, |control| control.socket)
}

pub fn receive(context: &mut Context) -> Option<Command> {
    let mut text = vec![0u8; LONGEST];
    // SAFETY: the kernel writes at most the buffer's length.
    let got = unsafe {
        syscall!(libc::SYS_recvfrom, socket(context), text.as_mut_ptr(), text.len(), 0, 0, 0)
    };
    if got == -i64::from(libc::EINTR) {
        return receive(context);
    }
    let text = text.get(..usize::try_from(got).ok().filter(|got| *got > 0)?)?;
    serde_json::from_slice(text).ok()
}

/// Sends an answer, and a descriptor with it if there is one.
pub fn send(context: &mut Context, reply: &Reply, descriptor: Option<i32>) {
    let text = serde_json::to_vec(reply).unwrap_or_default();
    let mut part = libc::iovec { iov_base: text.as_ptr() as *mut _, iov_len: text.len() };
    #[repr(C, align(8))]
    struct Rights {
        header: libc::cmsghdr,
        descriptor: i32,
        padding: i32,
    }
    let mut rights = Rights {
        header: libc::cmsghdr {
            cmsg_len: size_of::<libc::cmsghdr>() + 4,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        },
        descriptor: descriptor.unwrap_or(-1),
        padding: 0,
    };
    // SAFETY: plain data, all of it alive; the kernel only reads it.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if descriptor.is_some() {
            message.msg_control = (&raw mut rights).cast();
            message.msg_controllen = size_of::<Rights>();
        }
        syscall!(libc::SYS_sendmsg, socket(context), &raw const message, libc::MSG_NOSIGNAL);
    }
    let _ = rights.padding;
}
