//! System calls of a process that is replayed: each gets the answer that it got then. Those that
//! change what the engine itself keeps (memory, signals, threads) are done again.

use super::contexts::InCall;
use super::source::Source;
use super::{diverge, finish, memory, replayer};
use crate::runner::cpu::{NOT_STARTED, cpu};
use crate::runner::engine::engine;
use crate::runner::sys;
use crate::runner::syscall::{self, Outcome, make, process, seccomp, signals};
use crate::runner::thread::Thread;
use recording::log::{Call, Ending, Entry, FileView, Output};

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
    match replayer().source.peek() {
        Some(Entry::Call(_)) => complete(call),
        Some(Entry::Switch { .. } | Entry::Exec) => replayer().contexts.park_in(call),
        None => finish(None),
        _ => diverge(&format!("made {}", name(number))),
    }
}

fn name(number: u64) -> String {
    let known = base::system_call::name(number);
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

fn complete(made: InCall) {
    let Some(Entry::Call(call)) = replayer().source.take() else {
        diverge("a system call has no answer")
    };
    let InCall { number, arguments, check } = made;
    if call.number != number {
        diverge(&format!("made {} in place of {}", name(number), name(call.number)));
    }
    if call.check != check {
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
    let thread = replayer().contexts.current();
    match again(thread, &call, arguments) {
        Done::Answered => {}
        Done::Gone => return,
        Done::Child => return complete(made),
        Done::Resumed => {
            write_payload(&call);
            return;
        }
        Done::Other(answer) => {
            diverge(&format!("{} answers {answer} in place of {}", name(number), call.answer))
        }
    }
    let before = engine().before_call(number, arguments);
    write_payload(&call);
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
        libc::SYS_clone | libc::SYS_fork if call.answer > 0 => {
            return follow_child(call.answer as i32);
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

/// What a mapping shows, if it is of a file.
fn view(source: &mut Source) -> Option<(String, FileView)> {
    let Some(Entry::Mapped { .. }) = source.peek() else { return None };
    match source.take() {
        Some(Entry::Mapped { path, view }) => Some((path, view)),
        _ => None,
    }
}

/// `madvise`, where it changes what is there.
fn advise(a: [u64; 6]) {
    let [start, length, advice, ..] = a;
    if matches!(advice as i32, libc::MADV_DONTNEED | libc::MADV_REMOVE) {
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

/// A child was made. If it is the one to replay, this becomes it.
fn follow_child(pid: i32) -> Done {
    let Some(process) = replayer().becomes(pid) else { return Done::Answered };
    replayer().source = Source::open(&replayer().recording, process);
    let Some(Entry::Forked { thread }) = replayer().source.take() else {
        diverge("the log of a child does not begin as one")
    };
    replayer().contexts.only_current(thread);
    Done::Child
}

/// Puts what the kernel wrote into the guest's memory.
fn write_payload(call: &Call) {
    for (address, length) in &call.writes {
        if !engine().memory.is_readable(*address, *length) {
            diverge("memory that the kernel wrote to is not there");
        }
        engine().unguard(*address, address + length);
        // SAFETY: mapped, as just seen, and the kernel could write to it then.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(*address as *mut u8, *length as usize) };
        replayer().source.payload(bytes);
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
