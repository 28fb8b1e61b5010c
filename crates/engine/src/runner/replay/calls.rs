//! System calls of a process that is replayed: each gets the answer that it got then. Those that
//! change what the engine itself keeps (memory, signals, threads) are done again.

use super::contexts::{self, InCall, shares_memory};
use super::control;
use super::diversion;
use super::source::Source;
use super::{diverge, finish, is_poisoned, memory};
use crate::layout;
use crate::runner::clock;
use crate::runner::context::Context;
use crate::runner::cpu::NOT_STARTED;
use crate::runner::memory::Mapping;
use crate::runner::syscall::{self, Outcome, make, process, seccomp, signals};
use crate::sys;
use recording::log::{Call, Ending, Entry, FileView, Output};
use std::ops::Range;

/// The running thread makes a system call; `check` is the digest of its state before.
pub fn system_call(context: &mut Context, number: u64, arguments: [u64; 6], check: u32) {
    if diversion::is_on(context.engine()) {
        return diversion::system_call(context, number, arguments);
    }
    let call = InCall { number, arguments, check };
    match seccomp::ask(context, number, arguments) {
        Some(Outcome::Resumed) => {
            context.replayer().source.take();
            return;
        }
        Some(Outcome::Answer(answer)) => {
            context.replayer().source.take();
            return make::answered(context, number, arguments, answer);
        }
        _ => {}
    }
    others_wrote(context);
    if is_poisoned(context.engine())
        && let Some(Entry::Call(Call { time, .. }) | Entry::Switch { time, .. }) =
            context.replayer().source.peek()
        && *time != clock::now(context.cpu())
    {
        diverge(context, &format!("made {} at another time", name(number)));
    }
    match context.replayer().source.peek() {
        Some(Entry::Call(_)) => complete(context, call),
        Some(Entry::Switch { .. } | Entry::Exec) => context.replayer().contexts.park_in(call),
        None => finish(context, None),
        _ => diverge(context, &format!("made {}", name(number))),
    }
}

fn name(number: u64) -> String {
    let known = syscalls::name(number);
    known.map_or_else(|| format!("system call {number}"), |name| format!("the call {name}"))
}

/// The running thread's call, during which others ran, is over.
pub fn complete_parked(context: &mut Context) {
    match context.replayer().contexts.unpark() {
        Some(call) => complete(context, call),
        None => diverge(context, "a system call ended that nobody had made"),
    }
}

/// The running thread is about to become another program.
pub fn executes(context: &mut Context) {
    context.replayer().source.take();
    match context.replayer().source.peek() {
        Some(Entry::Call(_)) => {}
        // A process that shares our memory has gone its own way.
        Some(_) => context.replayer().contexts.end_current(),
        None => finish(context, None),
    }
}

/// Does to memory what other processes, or files behind it, have done.
pub fn others_wrote(context: &mut Context) {
    loop {
        match context.replayer().source.peek() {
            Some(Entry::Others { at: None, writes }) => {
                let writes = writes.clone();
                context.replayer().source.take();
                write_payload(context, &writes);
            }
            Some(Entry::Cut { identity, size }) => {
                let (identity, size) = (*identity, *size);
                context.replayer().source.take();
                memory::cut(context, identity, size);
            }
            _ => return,
        }
    }
}

fn complete(context: &mut Context, made: InCall) {
    others_wrote(context);
    let call = match context.replayer().source.take() {
        Some(Entry::Call(call)) => call,
        // It was killed meanwhile.
        None => finish(context, None),
        Some(_) => diverge(context, "a system call has no answer"),
    };
    let InCall { number, arguments, check } = made;
    context.replayer().last_call = number;
    diversion::report_to_twin(context, number, arguments);
    if call.number != number {
        diverge(context, &format!("made {} in place of {}", name(number), name(call.number)));
    }
    if call.check != check && !is_poisoned(context.engine()) {
        diverge(context, &format!("made {} with other registers, stack or data", name(number)));
    }
    context.replayer().checks += 1;
    if call.answer == NOT_STARTED {
        context.cpu().registers.pc -= 2;
        return;
    }
    if let Some(output) = call.output {
        context.replayer().shown += 1;
        show(context, output, number, arguments, call.answer);
    }
    if matches!(number as i64, libc::SYS_exit | libc::SYS_exit_group) {
        context.engine().record_syscall(number, arguments, 0);
    }
    match again(context, &call, arguments) {
        Done::Answered => {}
        Done::Gone => return,
        Done::Child => return complete(context, made),
        Done::Resumed => {
            write_payload(context, &call.writes);
            let answer = context.cpu().registers.general[0] as i64;
            context.engine().record_syscall(number, arguments, answer);
            return;
        }
        Done::Other(answer) => diverge(
            context,
            &format!("{} answers {answer} in place of {}", name(number), call.answer),
        ),
    }
    let before = context.engine().before_call(number, arguments);
    if is_poisoned(context.engine()) {
        let pc = context.cpu().registers.pc;
        context.engine().suspect_handed((number, arguments), call.answer, pc);
    }
    write_payload(context, &call.writes);
    context.engine().record_buffers(number, arguments, call.answer, before);
    make::answered(context, number, arguments, call.answer);
}

enum Done {
    /// As recorded.
    Answered,
    /// The registers are what they must be.
    Resumed,
    /// The thread has ended.
    Gone,
    /// This is now the child that the call has made, and what it was answered comes next.
    Child,
    /// With another answer.
    Other(i64),
}

/// Does again what changes the engine's own state.
fn again(context: &mut Context, call: &Call, a: [u64; 6]) -> Done {
    let groups = [maps_again, makes_again, ends_again];
    if let Some(done) = groups.iter().find_map(|group| group(context, call, a)) {
        return done;
    }
    let outcome = arranges_again(context, call, a).or_else(|| settings_again(context, call, a));
    match outcome {
        None => Done::Answered,
        Some(Outcome::Answer(answer)) if answer == call.answer => Done::Answered,
        Some(Outcome::Answer(answer)) => Done::Other(answer),
        Some(Outcome::Resumed) => Done::Resumed,
        Some(Outcome::Kernel { number, arguments, .. }) => {
            // SAFETY: only bases of segments come here, which are the guest's own.
            unsafe { sys::call(number as i64, arguments) };
            Done::Answered
        }
    }
}

fn has_failed(call: &Call) -> bool {
    (-4095..0).contains(&call.answer)
}

/// Calls whose effect on memory is in the log.
fn maps_again(context: &mut Context, call: &Call, a: [u64; 6]) -> Option<Done> {
    match call.number as i64 {
        _ if has_failed(call) => return None,
        libc::SYS_mmap => {
            let view = view(&mut context.replayer().source);
            memory::mmap(context, a, call.answer as u64, view);
        }
        libc::SYS_shmat => attach(context, call.answer as u64),
        libc::SYS_madvise => advise(context, a),
        _ => return None,
    }
    Some(Done::Answered)
}

/// Other calls that arrange memory.
fn arranges_again(context: &mut Context, call: &Call, a: [u64; 6]) -> Option<Outcome> {
    let engine = context.engine();
    Some(match call.number as i64 {
        libc::SYS_brk => syscall::memory::brk(engine, a),
        _ if has_failed(call) => return None,
        libc::SYS_mremap => {
            let flags = a[3] | (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
            let moves = call.answer as u64 != a[0];
            let a = if moves { [a[0], a[1], a[2], flags, call.answer as u64, 0] } else { a };
            syscall::memory::mremap(engine, a)
        }
        libc::SYS_shmdt => {
            let length =
                engine.process.memory.find(a[0]).map_or(0, |(range, _)| range.end - range.start);
            syscall::memory::munmap(engine, [a[0], length, 0, 0, 0, 0])
        }
        libc::SYS_munmap => syscall::memory::munmap(engine, a),
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => syscall::memory::mprotect(engine, a),
        _ => return None,
    })
}

/// Calls about signals and other settings of the thread.
fn settings_again(context: &mut Context, call: &Call, a: [u64; 6]) -> Option<Outcome> {
    let failed = has_failed(call);
    let (engine, thread) = context.parts();
    Some(match call.number as i64 {
        libc::SYS_rt_sigaction => signals::action(engine.actions_of(thread), a),
        libc::SYS_rt_sigprocmask => signals::mask(thread, a),
        libc::SYS_sigaltstack => signals::stack(engine, thread, a),
        libc::SYS_rt_sigreturn => signals::give_back(context),
        libc::SYS_arch_prctl if !failed => process::arch_prctl(engine, a),
        libc::SYS_set_tid_address => process::set_tid_address(thread, a),
        libc::SYS_set_robust_list => process::set_robust_list(thread, a),
        libc::SYS_seccomp if !failed => seccomp::seccomp(engine, thread, a),
        libc::SYS_prctl if a[0] as i32 == libc::PR_SET_SECCOMP && !failed => {
            seccomp::set(engine, thread, a)
        }
        _ => return None,
    })
}

/// Calls that make a thread or a process.
fn makes_again(context: &mut Context, call: &Call, a: [u64; 6]) -> Option<Done> {
    match call.number as i64 {
        libc::SYS_clone if a[0] & libc::CLONE_THREAD as u64 != 0 && !has_failed(call) => {
            new_thread(context, call.answer as i32, a);
        }
        libc::SYS_clone | libc::SYS_vfork if shares_memory(&made(call, a)) && call.answer > 0 => {
            contexts::has_child(context, call.answer as i32, made(call, a));
        }
        libc::SYS_clone | libc::SYS_fork if call.answer > 0 => {
            return Some(follow_child(context, call, a));
        }
        _ => return None,
    }
    Some(Done::Answered)
}

/// Calls that end the thread or the process.
fn ends_again(context: &mut Context, call: &Call, a: [u64; 6]) -> Option<Done> {
    let (engine, thread) = context.parts();
    match call.number as i64 {
        libc::SYS_exit => {
            thread.release(engine);
            engine.replayer().contexts.end_current();
            if let Some(Entry::End(ending)) = engine.replayer().source.peek() {
                let ending = *ending;
                finish(context, Some(ending));
            }
            Some(Done::Gone)
        }
        libc::SYS_exit_group if thread.foreign => {
            engine.replayer().contexts.end_current();
            Some(Done::Gone)
        }
        libc::SYS_exit_group => process_ends(context, a[0]),
        _ => None,
    }
}

fn process_ends(context: &mut Context, code: u64) -> ! {
    let recorded = match context.replayer().source.peek() {
        Some(Entry::End(ending)) => *ending,
        _ => Ending::Exit(code as i32),
    };
    let other = matches!(recorded, Ending::Exit(then) if then as u8 != code as u8);
    if other && is_poisoned(context.engine()) {
        diverge(context, &format!("ended with {}", code as u8));
    }
    finish(context, Some(recorded))
}

/// The call as it was made.
fn made(call: &Call, arguments: [u64; 6]) -> InCall {
    InCall { number: call.number, arguments, check: call.check }
}

/// What a mapping shows, if it is of a file.
pub fn view(source: &mut Source) -> Option<(String, FileView)> {
    let Some(Entry::Mapped { .. }) = source.peek() else { return None };
    match source.take() {
        Some(Entry::Mapped { path, view }) => Some((path, view)),
        _ => None,
    }
}

/// `shmat` again, at the place it had.
fn attach(context: &mut Context, start: u64) {
    let Some(Entry::Attached { length, protection, writes }) = context.replayer().source.take()
    else {
        diverge(context, "nothing is known of memory that was attached")
    };
    let mapping = Mapping { protection, shared: true, ..Mapping::default() };
    memory::map(context, start..start + length, mapping, None);
    write_payload(context, &writes);
}

/// `madvise`, where it changes what is there.
pub fn advise(context: &mut Context, a: [u64; 6]) {
    let [start, length, advice, ..] = a;
    let shared =
        context.engine().process.memory.find(start).is_some_and(|(_, mapping)| mapping.shared);
    // What is shared stays, but for what all are to lose.
    let empties = if shared { libc::MADV_REMOVE } else { libc::MADV_DONTNEED };
    if advice as i32 == empties {
        // SAFETY: the guest's own memory, which it wants emptied.
        unsafe {
            sys::call(libc::SYS_madvise, [start, length, libc::MADV_DONTNEED as u64, 0, 0, 0])
        };
    }
}

pub fn new_thread(context: &mut Context, tid: i32, a: [u64; 6]) {
    let [flags, stack, parent_tid, child_tid, tls, _] = a;
    let (engine, parent) = context.parts();
    let registers = engine.cpu.registers;
    let mut child = process::child_of(registers, parent, parent.block, (flags, stack, tls));
    child.set_tid(tid);
    child.set_clear_tid(flags, child_tid);
    context.replayer().contexts.add(child);
    process::write_numbers(flags, tid, parent_tid, child_tid);
}

/// A child was made. If it is the one to replay, this becomes it; if all are, a copy does.
fn follow_child(context: &mut Context, call: &Call, a: [u64; 6]) -> Done {
    let pid = call.answer as i32;
    let process = match context.replayer().becomes(pid) {
        Some(process) => process,
        None => match context.replayer().child(pid) {
            Some(process) if control::branches(context) => {
                if context.engine().observed.ring.is_some() {
                    // The one it has is the parent's, too.
                    context.engine().restart_events(Some(sys::getppid()));
                }
                process
            }
            _ => return Done::Answered,
        },
    };
    context.replayer().process = process;
    context.replayer().shown = 0;
    context.replayer().source = Source::open(&context.replayer().recording, process);
    let thread = match context.replayer().source.take() {
        Some(Entry::Forked { thread }) => thread,
        // It was killed before it did anything.
        None => finish(context, None),
        Some(_) => diverge(context, "the log of a child does not begin as one"),
    };
    contexts::only_current(context, thread);
    if call.number as i64 == libc::SYS_clone {
        process::begin_child(context.cpu(), a);
    }
    context.engine().record_fork(0);
    context.engine().record_thread(thread);
    Done::Child
}

/// Puts what was written into the guest's memory, piece by piece.
pub fn write_payload(context: &mut Context, writes: &[(u64, u64)]) {
    for (address, length) in writes {
        put_payload(context, *address, *length);
    }
}

/// Puts what somebody else wrote into the guest's memory, which it may itself only read.
fn put_payload(context: &mut Context, address: u64, length: u64) {
    let end = address.saturating_add(length);
    if layout::belongs_to_engine(&(address..end))
        || !context.engine().process.memory.is_readable(address, length)
    {
        diverge(context, "memory that others wrote to is not there");
    }
    context.engine().unguard(address, end);
    let closed = context.engine().process.memory.inside(address..end);
    let closed = || closed.iter().filter(|(_, mapping)| mapping.protection & libc::PROT_WRITE == 0);
    let protect = |range: &Range<u64>, protection: i32| {
        let (start, end) = (range.start & !0xfff, range.end.next_multiple_of(4096));
        // SAFETY: the guest's own memory.
        unsafe { sys::call(libc::SYS_mprotect, [start, end - start, protection as u64, 0, 0, 0]) };
    };
    for (range, _) in closed() {
        protect(range, libc::PROT_READ | libc::PROT_WRITE);
    }
    memory::reach(context, address..end);
    // SAFETY: mapped, as just seen, and writable now.
    let bytes = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, length as usize) };
    context.replayer().source.payload(bytes);
    for (range, mapping) in closed() {
        protect(range, memory::readable(mapping.protection));
    }
}

/// Shows again what the guest wrote to the tool's own output.
fn show(context: &mut Context, output: Output, number: u64, a: [u64; 6], answer: i64) {
    // On the way to a child it is still its parent that writes.
    let Some(outputs) = context.replayer().outputs.filter(|_| context.replayer().path.is_empty())
    else {
        return;
    };
    let Some(descriptor) = outputs.get(output.stream as usize - 1) else { return };
    if outputs[0] == outputs[1] {
        // One file for both: which it was, and when, stands before it.
        let mut head = output.order.to_le_bytes().to_vec();
        head.extend((u64::from(output.stream) << 56 | answer as u64).to_le_bytes());
        sys::write_all(*descriptor, &head);
    }
    let mut left = answer as u64;
    let mut put = |address: u64, length: u64| {
        let length = length.min(left);
        left -= length;
        if context.engine().process.memory.is_readable(address, length) {
            // SAFETY: as just seen.
            sys::write_all(*descriptor, unsafe {
                std::slice::from_raw_parts(address as *const u8, length as usize)
            });
        }
    };
    if number as i64 == libc::SYS_writev {
        for index in 0..a[2].min(1024) {
            let part = |at| crate::runner::guest::read_u64(a[1] + 16 * index + at);
            if let (Some(address), Some(length)) = (part(0), part(8)) {
                put(address, length);
            }
        }
    } else {
        put(a[1], a[2]);
    }
}
