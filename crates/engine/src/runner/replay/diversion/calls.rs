//! System calls of a diverted process: none is made for real but those that arrange its own memory.

use super::super::calls::{advise, new_thread};
use super::super::{contexts, memory};
use super::recorded::{FAR, Made, NEAR};
use super::{asking, check_time, finish, take_recorded, waiting};
use crate::control::DiversionEnd;
use crate::layout;
use crate::runner::context::Context;
use crate::runner::guest;
use crate::runner::signal::{DEFAULT, Mask, SignalInfo, deliver, is_deadly};
use crate::runner::syscall::{self, Outcome, make, process, seccomp, signals};
use crate::runner::thread::Thread;
use recording::log::Ending;

/// What becomes of a call.
enum Done {
    /// It is answered.
    Answer(i64),
    /// The registers are what they must be, or the thread waits or has ended.
    Resumed,
}

/// The running thread makes a system call.
pub fn system_call(context: &mut Context, number: u64, arguments: [u64; 6]) {
    check_time(context);
    let filtered = seccomp::ask(context, number, arguments);
    let done = match filtered.map(done) {
        Some(done) => done,
        None => {
            own(context, number, arguments).unwrap_or_else(|| outside(context, number, arguments))
        }
    };
    if let Done::Answer(answer) = done {
        make::answered(context, number, arguments, answer);
        come_through(context);
    }
}

fn done(outcome: Outcome) -> Done {
    match outcome {
        Outcome::Answer(answer) => Done::Answer(answer),
        Outcome::Resumed => Done::Resumed,
        Outcome::Kernel { .. } => Done::Answer(-i64::from(libc::ENOSYS)),
    }
}

/// Calls about the process itself: its memory, threads and signals, and its end.
fn own(context: &mut Context, number: u64, a: [u64; 6]) -> Option<Done> {
    let groups = [memory_call, settings_call, thread_call];
    let outcome = groups.iter().find_map(|group| group(context, number as i64, a));
    outcome.map(done).or_else(|| match number as i64 {
        libc::SYS_kill | libc::SYS_tkill | libc::SYS_tgkill => send(context, number, a),
        _ => None,
    })
}

/// Calls that arrange memory.
fn memory_call(context: &mut Context, number: i64, a: [u64; 6]) -> Option<Outcome> {
    let heap_end = context.engine().process.memory.heap.end;
    let more = match number {
        libc::SYS_brk => a[0].saturating_sub(heap_end),
        libc::SYS_mmap if a[3] as i32 & libc::MAP_ANONYMOUS == 0 => return None,
        libc::SYS_mmap => a[1],
        libc::SYS_mremap => a[2].saturating_sub(a[1]),
        _ => 0,
    };
    let fits = more == 0 || has_room(context, more);
    let engine = context.engine();
    Some(match number {
        libc::SYS_brk if !fits => Outcome::Answer(heap_end as i64),
        _ if !fits => Outcome::error(libc::ENOMEM),
        libc::SYS_brk => syscall::memory::brk(engine, a),
        libc::SYS_mmap => syscall::memory::mmap(engine, a),
        libc::SYS_mremap => syscall::memory::mremap(engine, a),
        libc::SYS_munmap => syscall::memory::munmap(engine, a),
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => syscall::memory::mprotect(engine, a),
        libc::SYS_madvise => {
            advise(context, a);
            Outcome::Answer(0)
        }
        _ => return None,
    })
}

/// Calls about signals and other settings of the thread.
fn settings_call(context: &mut Context, number: i64, a: [u64; 6]) -> Option<Outcome> {
    let (engine, thread) = context.parts();
    Some(match number {
        libc::SYS_rt_sigaction => signals::action(engine.actions_of(thread), a),
        libc::SYS_rt_sigprocmask => signals::mask(thread, a),
        libc::SYS_sigaltstack => signals::stack(engine, thread, a),
        libc::SYS_rt_sigreturn => signals::give_back(context),
        libc::SYS_arch_prctl => process::arch_prctl(engine, a),
        libc::SYS_set_tid_address => process::set_tid_address(thread, a),
        libc::SYS_set_robust_list => process::set_robust_list(thread, a),
        libc::SYS_clone3 | libc::SYS_rseq => Outcome::error(libc::ENOSYS),
        _ => return None,
    })
}

/// Calls that make threads, let them wait, or end them.
fn thread_call(context: &mut Context, number: i64, a: [u64; 6]) -> Option<Outcome> {
    Some(match number {
        libc::SYS_clone if a[0] & libc::CLONE_THREAD as u64 != 0 => {
            let parent = context.thread().tid();
            let number = new_number(context, parent, a);
            new_thread(context, number, a);
            Outcome::Answer(i64::from(number))
        }
        libc::SYS_futex => match waiting::futex(context, a) {
            Some(answer) => Outcome::Answer(answer),
            None => Outcome::Resumed,
        },
        libc::SYS_sched_yield => {
            waiting::yield_turn(context);
            Outcome::Answer(0)
        }
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => {
            let time = if number == libc::SYS_nanosleep { a[0] } else { a[2] };
            let relative = number == libc::SYS_nanosleep || a[1] == 0;
            let duration = waiting::duration(time).filter(|_| relative).unwrap_or(1);
            waiting::sleep(context, duration);
            Outcome::Resumed
        }
        libc::SYS_pause | libc::SYS_rt_sigsuspend => {
            waiting::for_ever(context);
            Outcome::Resumed
        }
        libc::SYS_exit => {
            leave(context, a[0] as i32);
            Outcome::Resumed
        }
        libc::SYS_exit_group => finish(context, DiversionEnd::Ended(Ending::Exit(a[0] as i32))),
        libc::SYS_execve => {
            let path = guest::read_string(a[0]).unwrap_or_default();
            let path = String::from_utf8_lossy(&path).into_owned();
            finish(context, DiversionEnd::Executed(path))
        }
        _ => return None,
    })
}

/// Calls that are never answered by the recording.
pub fn is_own(number: u64) -> bool {
    const OWN: [i64; 16] = [
        libc::SYS_brk,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_arch_prctl,
        libc::SYS_set_tid_address,
        libc::SYS_set_robust_list,
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
    ];
    OWN.contains(&(number as i64))
}

/// The number of a new thread: the recorded one, if that made the same.
fn new_number(context: &mut Context, parent: i32, a: [u64; 6]) -> i32 {
    let numbers = context.replayer().contexts.in_turn();
    let made = take_recorded(context, (parent, libc::SYS_clone as u64, a), NEAR);
    let recorded = made.map(|made| made.call.answer as i32);
    let highest = numbers.iter().copied().max().unwrap_or(0);
    recorded.filter(|number| *number > 0 && !numbers.contains(number)).unwrap_or(highest + 1)
}

/// Whether the process may map so much more; it counts.
fn has_room(context: &mut Context, bytes: u64) -> bool {
    let diversion = context.replayer().diversion();
    let after = diversion.mapped.saturating_add(bytes);
    let fits = after <= diversion.budget.memory;
    match fits {
        true => diversion.mapped = after,
        false => diversion.note("refused: more memory than a diversion may have".into()),
    }
    fits
}

/// One thread ends.
fn leave(context: &mut Context, code: i32) {
    let (engine, thread) = context.parts();
    let word = thread.kernel.clear_tid;
    thread.release(engine);
    let last = context.replayer().contexts.in_turn().len() == 1;
    if last {
        finish(context, DiversionEnd::Ended(Ending::Exit(code)));
    }
    context.replayer().contexts.end_current();
    if word != 0 {
        waiting::ended(context, word);
    }
}

/// A signal that the process sends itself; nothing if it is meant for another.
fn send(context: &mut Context, number: u64, a: [u64; 6]) -> Option<Done> {
    const SI_TKILL: i32 = -6;
    const SI_USER: i32 = 0;
    let running = context.thread().tid();
    let own = asking::process(context);
    let (process, target, signal, code) = match number as i64 {
        libc::SYS_kill => (a[0] as i32, running, a[1] as i32, SI_USER),
        libc::SYS_tkill => (own, a[0] as i32, a[1] as i32, SI_TKILL),
        _ => (a[0] as i32, a[1] as i32, a[2] as i32, SI_TKILL),
    };
    const LAST: i32 = 64;
    if !(0..=LAST).contains(&signal) {
        return Some(Done::Answer(-i64::from(libc::EINVAL)));
    }
    let does_something = signal != 0 && does_something(context, signal);
    let info = SignalInfo::fault(signal, code, own as u32 as u64, (0, 0));
    let reach = |reached: &mut Thread| {
        if target == running || reached.signals.mask.has(signal) {
            // Its own come through when the call has been answered.
            reached.signals.held.put(info);
        } else {
            reached.shared.inbox.put(info);
            reached.shared.attend();
        }
    };
    let sent = |thread: &mut Thread| does_something.then(|| reach(thread));
    if process != own {
        return None;
    }
    contexts::with_thread(context, target, sent)?;
    Some(Done::Answer(0))
}

/// Whether a signal is handled or ends the process. One that would stop it does nothing.
fn does_something(context: &mut Context, signal: i32) -> bool {
    let (engine, thread) = context.parts();
    let action = *engine.actions_of(thread).get(signal);
    action.is_handler() || action.handler == DEFAULT && is_deadly(signal)
}

/// Signals that the thread has sent itself, and does not block.
fn come_through(context: &mut Context) {
    let open = Mask(!context.thread().signals.mask.0);
    while let Some(info) = context.thread().signals.held.take(open) {
        deliver::deliver(context, info);
    }
}

/// Calls about what is outside: answered as recorded, made up, or refused.
fn outside(context: &mut Context, number: u64, a: [u64; 6]) -> Done {
    let answer = recorded(context, (number, a), NEAR)
        .or_else(|| write_out(context, number, a))
        .or_else(|| asking::answer(context, number, a))
        .or_else(|| recorded(context, (number, a), FAR));
    Done::Answer(answer.unwrap_or_else(|| refuse(context, number, a)))
}

/// The answer that was recorded for a call, if its thread made it among the next ones.
fn recorded(
    context: &mut Context,
    (number, a): (u64, [u64; 6]),
    ahead_at_most: usize,
) -> Option<i64> {
    let thread = context.replayer().contexts.number();
    let made = take_recorded(context, (thread, number, a), ahead_at_most)?;
    context.replayer().diversion().answered += 1;
    Some(as_recorded(context, made, number, a))
}

/// Standard output and error, also where the recorded process wrote nothing.
fn write_out(context: &mut Context, number: u64, a: [u64; 6]) -> Option<i64> {
    let stream = u8::try_from(a[0]).ok().filter(|stream| matches!(stream, 1 | 2))?;
    let output = &mut context.replayer().diversion().output;
    let written = match number as i64 {
        libc::SYS_write => output.put(stream, a[1], a[2]),
        libc::SYS_writev => output.put_vector(stream, a[1], a[2]),
        _ => return None,
    };
    Some(written.map_or(-i64::from(libc::EFAULT), |written| written as i64))
}

/// Gives the answer that the recorded process got.
fn as_recorded(context: &mut Context, made: Made, number: u64, a: [u64; 6]) -> i64 {
    let Made { call, payload, mapped, .. } = made;
    if (-4095..0).contains(&call.answer) {
        return call.answer;
    }
    if let Some(output) = call.output {
        let kept = &mut context.replayer().diversion().output;
        let written = match number as i64 {
            libc::SYS_writev => kept.put_vector(output.stream, a[1], a[2]),
            _ => kept.put(output.stream, a[1], call.answer as u64),
        };
        return written.map_or(-i64::from(libc::EFAULT), |_| call.answer);
    }
    match number as i64 {
        libc::SYS_mmap => return map_file(context, a, call.answer as u64, mapped),
        libc::SYS_shmat => return refuse(context, number, a),
        libc::SYS_clone | libc::SYS_fork | libc::SYS_vfork => {
            context
                .replayer()
                .diversion()
                .note(format!("not run: the child that {} made", name(number)));
        }
        _ => {}
    }
    let mut rest = payload.as_slice();
    for (address, length) in &call.writes {
        let (bytes, after) = rest.split_at((*length as usize).min(rest.len()));
        if !asking::write(context, *address, bytes) {
            return -i64::from(libc::EFAULT);
        }
        rest = after;
    }
    call.answer
}

/// Maps a file that the recording has: where it was, if nothing is there now.
fn map_file(
    context: &mut Context,
    a: [u64; 6],
    then: u64,
    view: Option<(String, recording::log::FileView)>,
) -> i64 {
    let length = a[1].next_multiple_of(4096);
    if view.is_none() || !has_room(context, length) {
        return -i64::from(libc::ENOMEM);
    }
    let fixed = a[3] as i32 & libc::MAP_FIXED != 0;
    let free = context.engine().process.memory.is_free(&(then..then.saturating_add(length)));
    let place =
        if fixed || free { Some(then) } else { context.engine().process.memory.place(0, length) };
    let usable = |place: &u64| !layout::belongs_to_engine(&(*place..place.saturating_add(length)));
    let Some(place) = place.filter(usable) else { return -i64::from(libc::ENOMEM) };
    memory::mmap(context, a, place, view);
    place as i64
}

/// What would act outside, or ask for what nobody knows, is not done.
fn refuse(context: &mut Context, number: u64, a: [u64; 6]) -> i64 {
    let text = match number as i64 {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_readv => {
            // What was read is used up.
            context.replayer().diversion().note(format!(
                "made up: the end of what {} reads from {}",
                name(number),
                a[0]
            ));
            return 0;
        }
        libc::SYS_open | libc::SYS_stat | libc::SYS_lstat | libc::SYS_access => path(number, a[0]),
        libc::SYS_openat | libc::SYS_newfstatat | libc::SYS_unlinkat => path(number, a[1]),
        libc::SYS_unlink | libc::SYS_rename | libc::SYS_mkdir => path(number, a[0]),
        _ => name(number),
    };
    context.replayer().diversion().note(format!("refused: {text}"));
    -i64::from(libc::EPERM)
}

fn path(number: u64, address: u64) -> String {
    const SHOWN: usize = 80;
    let path = guest::read_string(address).unwrap_or_default();
    let path = String::from_utf8_lossy(&path[..path.len().min(SHOWN)]).into_owned();
    format!("{} of {path}", name(number))
}

fn name(number: u64) -> String {
    syscalls::name(number).map_or_else(|| format!("system call {number}"), str::to_owned)
}
