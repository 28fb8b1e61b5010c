//! Asked from outside: runs to moments, leaves checkpoints.

use super::{extract, replayer};
use crate::control::{Command, Goal, Instant, Reply, Stopped};
use crate::report::Divergence;
use crate::runner::cpu::cpu;
use crate::runner::engine::engine;
use crate::runner::events::Ring;
use crate::runner::numbers::Numbers;
use crate::runner::record::image::thread_data;
use crate::runner::sys::{self, syscall};
use crate::runner::{arena, clock, record, report, start};
use events::Plan;
use recording::log::Ending;
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
}

/// Whether the goal is a moment, and this is it or a later one.
pub fn is_at_goal() -> bool {
    let Some(Instant { time, pc }) = goal() else { return false };
    let now = clock::now();
    now > time || now == time && pc.is_none_or(|pc| pc == cpu().registers.pc)
}

/// Whether the running thread is about to execute the instruction of the goal for the last time
/// that counts. Counts how often it does.
pub fn meets_place() -> bool {
    let here = here();
    let Some(control) = &mut replayer().control else { return false };
    let Goal::Hit { pcs, thread, count } = &control.goal else { return false };
    let meant = pcs.contains(&here.1) && thread.is_none_or(|thread| thread == here.2);
    if !meant || control.counted == Some(here) {
        return false;
    }
    control.counted = Some(here);
    control.hits += 1;
    control.hits == *count
}

/// Ticks, next instruction and thread. Two threads can stand at the same place at the same tick.
fn here() -> (u64, u64, i32) {
    (clock::now(), cpu().registers.pc, replayer().contexts.number())
}

/// The time and the address that the goal lies at, if it has them.
pub fn goal() -> Option<Instant> {
    match replayer().control.as_ref()?.goal {
        Goal::At(instant) => Some(instant),
        _ => None,
    }
}

/// The process stands still: says so, and does what is asked next. Comes back when it is to run.
pub fn stand(end: Option<Option<Ending>>, divergence: Option<Divergence>) {
    if engine().ring.is_some() {
        engine().set_plan(quiet());
        engine().finish_events();
        engine().ring = None;
    }
    extract::end(end.is_some());
    let mut told = false;
    loop {
        if !std::mem::replace(&mut told, true) {
            tell(end, divergence.clone());
        }
        match hear() {
            Some(Command::Run { to, plan }) if end.is_none() && divergence.is_none() => {
                return go(to, plan);
            }
            Some(Command::Extract { to }) if end.is_none() && divergence.is_none() => {
                extract::begin();
                return go(to, None);
            }
            Some(Command::Run { .. } | Command::Extract { .. } | Command::Where) => told = false,
            Some(Command::Checkpoint) => checkpoint(),
            None => sys::exit_group(0),
        }
    }
}

fn quiet() -> Plan {
    Plan::default().with_ticks(true)
}

fn go(to: Goal, plan: Option<Box<Plan>>) {
    let engine = engine();
    let plan = plan.map_or_else(quiet, |plan| plan.with_ticks(true));
    if plan.emits() {
        engine.ring = Ring::new(engine.config.rings, engine.numbers.host, None).ok();
        // A consumer of its own, which knows no shapes yet.
        engine.cache.flush();
    }
    let places: Vec<u64> = match &to {
        Goal::Hit { pcs, .. } => pcs.clone(),
        _ => Vec::new(),
    };
    if plan != engine.config.plan || plan.emits() || engine.stops.watched() != places {
        engine.stops.watch(places);
        engine.set_plan(plan);
    }
    engine.record_thread(replayer().contexts.number());
    let here = here();
    if let Some(control) = &mut replayer().control {
        // Where it stands now has been met before it stood still.
        control.counted = Some(here);
        (control.goal, control.hits) = (to, 0);
    }
}

fn tell(end: Option<Option<Ending>>, divergence: Option<Divergence>) {
    let thread = replayer().contexts.current_or_none().map_or_else(Default::default, |thread| {
        thread.move_out();
        thread_data(thread)
    });
    let stopped = Stopped {
        process: sys::getpid(),
        time: clock::now(),
        thread,
        check: record::position(&engine().memory).check,
        hits: replayer().control.as_ref().map_or(0, |control| control.hits),
        ended: end.is_some(),
        ending: end.flatten(),
        divergence,
        modules: report::modules(&engine().memory),
    };
    send(&Reply::Stopped(Box::new(stopped)), None);
}

/// Leaves a copy behind. Original and copy go on waiting to be asked.
fn checkpoint() {
    let mut pair = [0; 2];
    // SAFETY: the kernel writes two descriptors.
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        syscall!(libc::SYS_socketpair, libc::AF_UNIX, kind, 0, pair.as_mut_ptr());
    }
    let close = |descriptor: i32| {
        // SAFETY: a descriptor of ours.
        unsafe { syscall!(libc::SYS_close, descriptor) };
    };
    let Some(process) = copy() else {
        close(pair[0]);
        if let Some(control) = &mut replayer().control {
            close(std::mem::replace(&mut control.socket, pair[1]));
        }
        return;
    };
    close(pair[1]);
    send(&Reply::Checkpoint { process }, Some(pair[0]));
    close(pair[0]);
}

/// Makes a copy of this process and waits until it has ended. Whether this is the copy.
pub fn branches() -> bool {
    let Some(process) = copy() else { return true };
    // SAFETY: the kernel writes nothing, as no status is asked for. How children end is ignored, so it
    // waits until there are none.
    unsafe { syscall!(libc::SYS_wait4, process, 0, 0, 0) };
    false
}

/// Makes a copy of this process: its number; nothing in the copy.
fn copy() -> Option<i32> {
    // SAFETY: the child has its own copy of everything, and is the only thread in it as this one is here.
    let child = unsafe { syscall!(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    if child != 0 {
        return Some(child as i32);
    }
    arena::after_fork();
    engine().numbers = Numbers::of_this(engine().config.proc);
    start::follow_host(&engine().config);
    super::memory::unshare();
    None
}

fn socket() -> i32 {
    replayer().control.as_ref().map_or(-1, |control| control.socket)
}

fn hear() -> Option<Command> {
    let mut text = vec![0u8; LONGEST];
    // SAFETY: the kernel writes at most the buffer's length.
    let got =
        unsafe { syscall!(libc::SYS_recvfrom, socket(), text.as_mut_ptr(), text.len(), 0, 0, 0) };
    if got == -i64::from(libc::EINTR) {
        return hear();
    }
    let text = text.get(..usize::try_from(got).ok().filter(|got| *got > 0)?)?;
    serde_json::from_slice(text).ok()
}

/// Sends an answer, and a descriptor with it if there is one.
fn send(reply: &Reply, descriptor: Option<i32>) {
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
        syscall!(libc::SYS_sendmsg, socket(), &raw const message, libc::MSG_NOSIGNAL);
    }
    let _ = rights.padding;
}
