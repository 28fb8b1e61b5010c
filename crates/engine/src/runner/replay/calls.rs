//! System calls of a process that is replayed: each gets the answer that it got then. Those that
//! change what the engine itself keeps (memory, signals, threads) are done again.

use super::contexts::{InCall, shares_memory};
use super::control;
use super::source::Source;
use super::{diverge, finish, is_poisoned, memory, replayer};
use crate::runner::clock;
use crate::runner::cpu::{NOT_STARTED, cpu};
use crate::runner::engine::engine;
use crate::runner::layout;
use crate::runner::memory::Mapping;
use crate::runner::sys;
use crate::runner::syscall::{self, Outcome, make, process, seccomp, signals};
use crate::runner::thread::Thread;
use recording::log::{Call, Ending, Entry, FileView, Output};
use std::ops::Range;

/// The running thread makes a system call; `check` is the digest of its state before.
pub fn system_call(thread: &mut Thread, number: u64, arguments: [u64; 6], check: u32) {
    let call = InCall { number, arguments, check };
    match seccomp::ask(engine(), thread, number, arguments) {
        Some(Outcome::Resumed) => {
            replayer().source.take();
            return;
        }
        Some(Outcome::Answer(answer)) => {
            replayer().source.take();
            return make::answered(thread, number, arguments, answer);
        }
        _ => {}
    }
    others_wrote();
    if is_poisoned()
        && let Some(Entry::Call(Call { time, .. }) | Entry::Switch { time, .. }) =
            replayer().source.peek()
        && *time != clock::now()
    {
        diverge(&format!("made {} at another time", name(number)));
    }
    match replayer().source.peek() {
        Some(Entry::Call(_)) => complete(call),
        Some(Entry::Switch { .. } | Entry::Exec) => replayer().contexts.park_in(call),
        None => finish(None),
        _ => diverge(&format!("made {}", name(number))),
    }
}

fn name(number: u64) -> String {
    let known = syscalls::name(number);
    known.map_or_else(|| format!("system call {number}"), |name| format!("the call {name}"))
}

/// The running thread's call, during which others ran, is over.
pub fn complete_parked() {
    match replayer().contexts.unpark() {
        Some(call) => complete(call),
        None => diverge("a system call ended that nobody had made"),
    }
}

/// The running thread is about to become another program.
pub fn executes() {
    replayer().source.take();
    match replayer().source.peek() {
        Some(Entry::Call(_)) => {}
        // A process that shares our memory has gone its own way.
        Some(_) => replayer().contexts.end_current(),
        None => finish(None),
    }
}

/// Does to memory what other processes, or files behind it, have done.
pub fn others_wrote() {
    loop {
        match replayer().source.peek() {
            Some(Entry::Others { at: None, writes }) => {
                let writes = writes.clone();
                replayer().source.take();
                write_payload(&writes);
            }
            Some(Entry::Cut { identity, size }) => {
                let (identity, size) = (*identity, *size);
                replayer().source.take();
                memory::cut(identity, size);
            }
            _ => return,
        }
    }
}

fn complete(made: InCall) {
    others_wrote();
    let call = match replayer().source.take() {
        Some(Entry::Call(call)) => call,
        // It was killed meanwhile.
        None => finish(None),
        Some(_) => diverge("a system call has no answer"),
    };
    let InCall { number, arguments, check } = made;
    replayer().last_call = number;
    if call.number != number {
        diverge(&format!("made {} in place of {}", name(number), name(call.number)));
    }
    if call.check != check && !is_poisoned() {
        diverge(&format!("made {} with other registers, stack or data", name(number)));
    }
    replayer().checks += 1;
    if call.answer == NOT_STARTED {
        cpu().registers.pc -= 2;
        return;
    }
    if let Some(output) = call.output {
        show(output, number, arguments, call.answer);
    }
    if matches!(number as i64, libc::SYS_exit | libc::SYS_exit_group) {
        engine().record_syscall(number, arguments, 0);
    }
    let thread = replayer().contexts.current();
    match again(thread, &call, arguments) {
        Done::Answered => {}
        Done::Gone => return,
        Done::Child => return complete(made),
        Done::Resumed => {
            write_payload(&call.writes);
            engine().record_syscall(number, arguments, cpu().registers.general[0] as i64);
            return;
        }
        Done::Other(answer) => {
            diverge(&format!("{} answers {answer} in place of {}", name(number), call.answer))
        }
    }
    let before = engine().before_call(number, arguments);
    if is_poisoned() {
        engine().suspect_handed((number, arguments), call.answer, cpu().registers.pc);
    }
    write_payload(&call.writes);
    engine().record_buffers(number, arguments, call.answer, before);
    make::answered(replayer().contexts.current(), number, arguments, call.answer);
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
fn again(thread: &mut Thread, call: &Call, a: [u64; 6]) -> Done {
    let engine = engine();
    let failed = (-4095..0).contains(&call.answer);
    let outcome = match call.number as i64 {
        libc::SYS_mmap if !failed => {
            memory::mmap(a, call.answer as u64, view(&mut replayer().source));
            return Done::Answered;
        }
        libc::SYS_mremap if !failed => {
            let flags = a[3] | (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
            let moves = call.answer as u64 != a[0];
            let a = if moves { [a[0], a[1], a[2], flags, call.answer as u64, 0] } else { a };
            syscall::memory::mremap(engine, a)
        }
        libc::SYS_shmat if !failed => {
            attach(call.answer as u64);
            return Done::Answered;
        }
        libc::SYS_shmdt if !failed => {
            let length = engine.memory.find(a[0]).map_or(0, |(range, _)| range.end - range.start);
            syscall::memory::munmap(engine, [a[0], length, 0, 0, 0, 0])
        }
        libc::SYS_munmap if !failed => syscall::memory::munmap(engine, a),
        libc::SYS_mprotect | libc::SYS_pkey_mprotect if !failed => {
            syscall::memory::mprotect(engine, a)
        }
        libc::SYS_brk => syscall::memory::brk(engine, a),
        libc::SYS_madvise if !failed => {
            advise(a);
            return Done::Answered;
        }
        libc::SYS_rt_sigaction => signals::action(engine.actions_of(thread), a),
        libc::SYS_rt_sigprocmask => signals::mask(thread, a),
        libc::SYS_sigaltstack => signals::stack(thread, a),
        libc::SYS_rt_sigreturn => signals::give_back(thread),
        libc::SYS_arch_prctl if !failed => process::arch_prctl(a),
        libc::SYS_set_tid_address => process::set_tid_address(thread, a),
        libc::SYS_set_robust_list => process::set_robust_list(thread, a),
        libc::SYS_seccomp if !failed => seccomp::seccomp(engine, thread, a),
        libc::SYS_prctl if a[0] as i32 == libc::PR_SET_SECCOMP && !failed => {
            seccomp::set(engine, thread, a)
        }
        libc::SYS_clone if a[0] & libc::CLONE_THREAD as u64 != 0 && !failed => {
            new_thread(thread, call.answer as i32, a);
            return Done::Answered;
        }
        libc::SYS_clone | libc::SYS_vfork if shares_memory(&made(call, a)) && call.answer > 0 => {
            replayer().contexts.has_child(call.answer as i32, made(call, a));
            return Done::Answered;
        }
        libc::SYS_clone | libc::SYS_fork if call.answer > 0 => {
            return follow_child(call, a);
        }
        libc::SYS_exit => {
            thread.release();
            replayer().contexts.end_current();
            if let Some(Entry::End(ending)) = replayer().source.peek() {
                finish(Some(*ending));
            }
            return Done::Gone;
        }
        libc::SYS_exit_group if thread.foreign => {
            replayer().contexts.end_current();
            return Done::Gone;
        }
        libc::SYS_exit_group => match replayer().source.peek() {
            Some(Entry::End(Ending::Exit(code))) if is_poisoned() && *code as u8 != a[0] as u8 => {
                diverge(&format!("ended with {}", a[0] as u8))
            }
            Some(Entry::End(ending)) => finish(Some(*ending)),
            _ => finish(Some(Ending::Exit(a[0] as i32))),
        },
        _ => return Done::Answered,
    };
    match outcome {
        Outcome::Answer(answer) if answer == call.answer => Done::Answered,
        Outcome::Answer(answer) => Done::Other(answer),
        Outcome::Resumed => Done::Resumed,
        Outcome::Kernel { number, arguments, .. } => {
            // SAFETY: only bases of segments come here, which are the guest's own.
            unsafe { sys::call(number as i64, arguments) };
            Done::Answered
        }
    }
}

/// The call as it was made.
fn made(call: &Call, arguments: [u64; 6]) -> InCall {
    InCall { number: call.number, arguments, check: call.check }
}

/// What a mapping shows, if it is of a file.
fn view(source: &mut Source) -> Option<(String, FileView)> {
    let Some(Entry::Mapped { .. }) = source.peek() else { return None };
    match source.take() {
        Some(Entry::Mapped { path, view }) => Some((path, view)),
        _ => None,
    }
}

/// `shmat` again, at the place it had.
fn attach(start: u64) {
    let Some(Entry::Attached { length, protection, writes }) = replayer().source.take() else {
        diverge("nothing is known of memory that was attached")
    };
    let mapping = Mapping { protection, shared: true, ..Mapping::default() };
    memory::map(start..start + length, mapping, None, &mut replayer().files);
    write_payload(&writes);
}

/// `madvise`, where it changes what is there.
fn advise(a: [u64; 6]) {
    let [start, length, advice, ..] = a;
    let shared = engine().memory.find(start).is_some_and(|(_, mapping)| mapping.shared);
    // What is shared stays, but for what all are to lose.
    let empties = if shared { libc::MADV_REMOVE } else { libc::MADV_DONTNEED };
    if advice as i32 == empties {
        // SAFETY: the guest's own memory, which it wants emptied.
        unsafe {
            sys::call(libc::SYS_madvise, [start, length, libc::MADV_DONTNEED as u64, 0, 0, 0])
        };
    }
}

fn new_thread(parent: &mut Thread, tid: i32, a: [u64; 6]) {
    let [flags, stack, parent_tid, child_tid, tls, _] = a;
    let mut child = process::child_of(parent, parent.block, flags, stack, tls);
    child.tid = tid;
    child.set_clear_tid(flags, child_tid);
    replayer().contexts.add(child);
    process::tell_numbers(flags, tid, parent_tid, child_tid);
}

/// A child was made. If it is the one to replay, this becomes it; if all are, a copy does.
fn follow_child(call: &Call, a: [u64; 6]) -> Done {
    let pid = call.answer as i32;
    let process = match replayer().becomes(pid) {
        Some(process) => process,
        None => match replayer().child(pid) {
            Some(process) if control::branches() => {
                if engine().ring.is_some() {
                    // The one it has is the parent's, too.
                    engine().restart_events(Some(sys::getppid()));
                }
                process
            }
            _ => return Done::Answered,
        },
    };
    replayer().process = process;
    replayer().source = Source::open(&replayer().recording, process);
    let thread = match replayer().source.take() {
        Some(Entry::Forked { thread }) => thread,
        // It was killed before it did anything.
        None => finish(None),
        Some(_) => diverge("the log of a child does not begin as one"),
    };
    replayer().contexts.only_current(thread);
    if call.number as i64 == libc::SYS_clone {
        process::begin_child(a);
    }
    engine().record_fork(0);
    engine().record_thread(thread);
    Done::Child
}

/// Puts what was written into the guest's memory, piece by piece.
pub fn write_payload(writes: &[(u64, u64)]) {
    for (address, length) in writes {
        put_payload(*address, *length);
    }
}

/// Puts what somebody else wrote into the guest's memory, which it may itself only read.
fn put_payload(address: u64, length: u64) {
    let end = address.saturating_add(length);
    if layout::belongs_to_engine(&(address..end)) || !engine().memory.is_readable(address, length) {
        diverge("memory that others wrote to is not there");
    }
    engine().unguard(address, end);
    let closed = engine().memory.inside(address..end);
    let closed = || closed.iter().filter(|(_, mapping)| mapping.protection & libc::PROT_WRITE == 0);
    let protect = |range: &Range<u64>, protection: i32| {
        let (start, end) = (range.start & !0xfff, range.end.next_multiple_of(4096));
        // SAFETY: the guest's own memory.
        unsafe { sys::call(libc::SYS_mprotect, [start, end - start, protection as u64, 0, 0, 0]) };
    };
    for (range, _) in closed() {
        protect(range, libc::PROT_READ | libc::PROT_WRITE);
    }
    memory::reach(address..end);
    // SAFETY: mapped, as just seen, and writable now.
    let bytes = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, length as usize) };
    replayer().source.payload(bytes);
    for (range, mapping) in closed() {
        protect(range, memory::readable(mapping.protection));
    }
}

/// Shows again what the guest wrote to the tool's own output.
fn show(output: Output, number: u64, a: [u64; 6], answer: i64) {
    // On the way to a child it is still its parent that writes.
    let Some(outputs) = replayer().outputs.filter(|_| replayer().path.is_empty()) else { return };
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
        if engine().memory.is_readable(address, length) {
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
