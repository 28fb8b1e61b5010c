//! Threads, children and the end.

use super::Outcome;
use crate::processor::user_end;
use crate::runner::context::Context;
use crate::runner::cpu::{CpuBlock, Registers};
use crate::runner::engine::Engine;
use crate::runner::engine::dispatch::{drop_baton, run, take_baton};
use crate::runner::screens::provenance;
use crate::runner::stack::{StackBlock, clone_on};
use crate::runner::thread::Thread;
use crate::runner::{arena, baton, futex, guest, record, signal, start};
use crate::sys::{self, syscall};
use recording::log::Ending;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;

/// `arch_prctl`: the base of FS is in the saved registers while Rust runs.
pub fn arch_prctl(engine: &mut Engine, a: [u64; 6]) -> Outcome {
    match a[0] {
        ARCH_SET_FS if a[1] >= user_end(engine.config.quirks.address_bits) => {
            Outcome::error(libc::EPERM)
        }
        ARCH_SET_FS => {
            engine.cpu.registers.fs = a[1];
            Outcome::Answer(0)
        }
        ARCH_GET_FS => {
            use crate::runner::signal::frame::GuestMemory;
            let written = guest::Checked.write(a[1], &engine.cpu.registers.fs.to_le_bytes());
            if written { Outcome::Answer(0) } else { Outcome::error(libc::EFAULT) }
        }
        _ => Outcome::Kernel { number: libc::SYS_arch_prctl as u64, arguments: a, blocks: false },
    }
}

/// `membarrier`: without restartable sequences there are no barriers for them.
pub fn membarrier(a: [u64; 6], pass: Outcome) -> Outcome {
    const QUERY: i64 = 0;
    const RESTARTABLE: i64 = 1 << 7 | 1 << 8;
    match a[0] as i32 as i64 {
        QUERY if a[1] == 0 => {
            // SAFETY: asks only.
            let offered = unsafe { syscall!(libc::SYS_membarrier, QUERY, 0, 0) };
            Outcome::Answer(if offered < 0 { offered } else { offered & !RESTARTABLE })
        }
        command if command & RESTARTABLE != 0 => Outcome::error(libc::EINVAL),
        _ => pass,
    }
}

/// `personality`: whether addresses are random is not the guest's to see or change.
pub fn personality(engine: &mut Engine, a: [u64; 6]) -> Outcome {
    const ASK: u32 = 0xffff_ffff;
    let before = engine.config.personality;
    if a[0] as u32 != ASK {
        engine.config.personality = a[0] as u32;
        set_personality(a[0] as u32 | libc::ADDR_NO_RANDOMIZE as u32);
    }
    Outcome::Answer(i64::from(before))
}

pub(super) fn set_personality(persona: u32) {
    // SAFETY: takes effect at the next `execve`, but for bits that are the guest's own choice.
    unsafe { syscall!(libc::SYS_personality, persona) };
}

/// Options that would take the runner away from the guest.
pub fn is_refused_prctl(option: i32) -> bool {
    const PR_SET_MM: i32 = 35;
    const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
    matches!(option, PR_SET_MM | PR_SET_SYSCALL_USER_DISPATCH)
}

/// `clone`: a thread or a child.
pub fn clone(context: &mut Context, a: [u64; 6]) -> Outcome {
    let flags = a[0];
    if flags & libc::CLONE_THREAD as u64 != 0 {
        let (engine, thread) = context.parts();
        return new_thread(engine, thread, a);
    }
    fork(context, flags, a)
}

fn new_thread(engine: &mut Engine, parent: &mut Thread, a: [u64; 6]) -> Outcome {
    let [flags, stack, parent_tid, child_tid, tls, _] = a;
    let needed = (libc::CLONE_VM | libc::CLONE_SIGHAND) as u64;
    if flags & needed != needed {
        return Outcome::error(libc::EINVAL);
    }
    let Some(block) = free_block(engine) else { return Outcome::error(libc::EAGAIN) };
    let recorded = engine.is_recorded();
    let mut child = child_of(engine.cpu.registers, parent, block, (flags, stack, tls));
    let mut kept = flags & !(libc::CLONE_SETTLS | libc::CLONE_PARENT_SETTID) as u64;
    if recorded {
        // The kernel must not write to the guest's memory at a time of its own choice.
        kept &= !(libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID) as u64;
        child.set_clear_tid(flags, child_tid);
    }
    child.admitted = recorded;
    let shared = Arc::clone(&child.shared);
    block.set_owner(Arc::as_ptr(&shared));
    let thread = Box::into_raw(child);
    // No signal may come to the new thread before it has a stack for the handler.
    signal::apply(signal::Mask(u64::MAX));
    // SAFETY: the block is free, `run` takes a thread; the kernel writes the child's number where
    // the guest asked for it.
    let tid = unsafe { clone_on(block, kept, run, thread as u64, child_tid) };
    signal::apply(parent.signals.mask);
    if tid < 0 {
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(thread) });
        return Outcome::Answer(tid);
    }
    engine.threads.list.push(thread);
    engine.threads.live += 1;
    if recorded {
        shared.tid.store(tid as i32, Ordering::Relaxed);
        // SAFETY: it waits for the baton until it is in the queue and its turn comes.
        unsafe { baton::admit(&shared) };
    }
    write_numbers(flags, tid as i32, parent_tid, child_tid);
    Outcome::Answer(tid)
}

/// Tells parent and child the child's number, where they asked for it.
pub fn write_numbers(flags: u64, tid: i32, parent_tid: u64, child_tid: u64) {
    use crate::runner::signal::frame::GuestMemory;
    if flags & libc::CLONE_PARENT_SETTID as u64 != 0 {
        guest::Checked.write(parent_tid, &tid.to_le_bytes());
    }
    if flags & libc::CLONE_CHILD_SETTID as u64 != 0 {
        guest::Checked.write(child_tid, &tid.to_le_bytes());
    }
}

/// A copy of a thread that goes on with another stack and thread pointer.
pub fn child_of(
    registers: Registers,
    parent: &Thread,
    block: StackBlock,
    (flags, stack, tls): (u64, u64, u64),
) -> Box<Thread> {
    let mut registers = registers;
    registers.general[0] = 0;
    if stack != 0 {
        registers.general[4] = stack;
    }
    if flags & libc::CLONE_SETTLS as u64 != 0 {
        registers.fs = tls;
    }
    let mut thread = Thread::new(block, registers);
    thread.signals.mask = parent.signals.mask;
    thread.foreign = parent.foreign;
    thread.signals.actions = parent.signals.actions.clone();
    thread.kernel.filters = parent.kernel.filters.clone();
    *thread.vector = (*parent.vector).clone();
    thread
}

/// A number that no thread has.
const NOBODY: i32 = i32::MIN + 1;

/// A stack block that nobody uses: one of a thread that has ended, or a new one.
fn free_block(engine: &mut Engine) -> Option<StackBlock> {
    let ended = engine.threads.list.iter().position(|thread| {
        // SAFETY: threads in the list have not been freed.
        let (tid, foreign) = unsafe { ((**thread).tid(), (**thread).foreign) };
        let lasts = tid > 0 && !foreign;
        // By its number alone: a process that shares our memory has its threads for itself.
        // SAFETY: signal 0 only asks whether the thread exists.
        let gone = || unsafe { syscall!(libc::SYS_tkill, tid.unsigned_abs(), 0) } == -i64::from(libc::ESRCH);
        !lasts && gone()
    });
    if let Some(index) = ended {
        let thread = engine.threads.list.swap_remove(index);
        // SAFETY: its kernel thread is gone, so nobody refers to it.
        return Some(unsafe { Box::from_raw(thread) }.block);
    }
    let number = engine.threads.blocks;
    engine.threads.blocks += 1;
    StackBlock::map(number).ok()
}

/// `exit`: one thread ends.
pub fn exit_thread(context: &mut Context, a: [u64; 6]) -> Outcome {
    let (engine, thread) = context.parts();
    engine.threads.attached.leaves(thread);
    // One that shares our memory is another process: what is left here does not depend on it.
    engine.threads.live -= usize::from(!thread.foreign);
    if std::ptr::eq(engine.threads.first, thread) {
        engine.threads.first = std::ptr::null_mut();
    }
    // Only of those that the kernel was not told of.
    thread.release(engine);
    if thread.kernel.clear_tid != 0 {
        futex::wake_one(engine, thread.kernel.clear_tid);
    }
    if engine.threads.live == 0 && !thread.foreign {
        engine.finish_events();
        record::ended(engine, Ending::Exit(a[0] as i32));
    }
    // A negative number marks the block as free once the kernel thread is gone.
    signal::apply(signal::Mask(u64::MAX));
    drop_baton(context);
    let tid = &context.shared().tid;
    tid.store(-tid.load(Ordering::Relaxed), Ordering::Relaxed);
    loop {
        // SAFETY: ends this kernel thread; it holds nothing.
        unsafe { syscall!(libc::SYS_exit, a[0]) };
    }
}

/// `set_tid_address`, when the kernel is not to know.
pub fn set_tid_address(thread: &mut Thread, a: [u64; 6]) -> Outcome {
    thread.kernel.clear_tid = a[0];
    Outcome::Answer(i64::from(thread.tid()))
}

/// `set_robust_list`, when the kernel is not to know.
pub fn set_robust_list(thread: &mut Thread, a: [u64; 6]) -> Outcome {
    const HEAD: u64 = 24;
    if a[1] != HEAD {
        return Outcome::error(libc::EINVAL);
    }
    thread.kernel.robust_list = a[0];
    Outcome::Answer(0)
}

/// A child process.
pub fn fork(context: &mut Context, flags: u64, a: [u64; 6]) -> Outcome {
    if flags & libc::CLONE_VM as u64 != 0 {
        return sharing_child(context, flags, a);
    }
    let (engine, thread) = context.parts();
    let [_, _, parent_tid, child_tid, ..] = a;
    let kept = flags & !(libc::CLONE_SETTLS as u64);
    signal::apply(signal::Mask(u64::MAX));
    let waits = flags & libc::CLONE_VFORK as u64 != 0;
    if waits {
        record::waits_for_child(engine);
    }
    // SAFETY: without CLONE_VM the child has its own copy of this stack.
    let pid = unsafe { syscall!(libc::SYS_clone, kept, 0, parent_tid, child_tid, 0) };
    if waits && pid != 0 {
        record::has_waited(engine);
    }
    if pid == 0 {
        after_fork_in_child(engine, thread);
        begin_child(&mut engine.cpu, a);
    } else if pid > 0 {
        engine.record_fork(pid as i32);
    }
    signal::apply(thread.signals.mask);
    Outcome::Answer(pid)
}

/// In a child with a copy of its parent's memory: the stack and thread pointer that it was given.
pub fn begin_child(cpu: &mut CpuBlock, a: [u64; 6]) {
    let [flags, stack, _, _, tls, _] = a;
    if stack != 0 {
        cpu.registers.general[4] = stack;
    }
    if flags & libc::CLONE_SETTLS as u64 != 0 {
        cpu.registers.fs = tls;
    }
}

/// A child process that shares the guest's memory, and so the engine and its baton: to us it is a
/// thread with another process number. With CLONE_VFORK the kernel holds the parent until the
/// child has ended or executed another program.
fn sharing_child(context: &mut Context, flags: u64, a: [u64; 6]) -> Outcome {
    let [_, stack, parent_tid, child_tid, tls, _] = a;
    let (engine, thread) = context.parts();
    let Some(block) = free_block(engine) else { return Outcome::error(libc::EAGAIN) };
    let mut child = child_of(engine.cpu.registers, thread, block, (flags, stack, tls));
    let shares_actions = flags & libc::CLONE_SIGHAND as u64 != 0;
    child.signals.actions = (!shares_actions).then(|| Box::new(engine.actions_of(thread).clone()));
    child.foreign = true;
    let shared = Arc::clone(&child.shared);
    block.set_owner(Arc::as_ptr(&shared));
    let child = Box::into_raw(child);
    let kept = flags & !((libc::CLONE_SETTLS | libc::CLONE_PARENT_SETTID) as u64);
    signal::apply(signal::Mask(u64::MAX));
    drop_baton(context);
    // SAFETY: the block is free and `run` takes a thread; nothing of the engine is borrowed.
    let pid = unsafe { clone_on(block, kept, run, child as u64, child_tid) };
    take_baton(context);
    let (engine, thread) = context.parts();
    // The child has the same number for itself; if it never ran, its block is free.
    shared.tid.store(if pid > 0 { pid as i32 } else { NOBODY }, Ordering::Relaxed);
    engine.threads.list.push(child);
    signal::apply(thread.signals.mask);
    if pid > 0 && flags & libc::CLONE_PARENT_SETTID as u64 != 0 {
        use crate::runner::signal::frame::GuestMemory;
        guest::Checked.write(parent_tid, &(pid as i32).to_le_bytes());
    }
    Outcome::Answer(pid)
}

/// `exit_group`: the whole process ends. One that shares memory leaves the baton behind.
pub fn exit_group(context: &mut Context, a: [u64; 6]) -> Outcome {
    let (engine, thread) = context.parts();
    if thread.foreign {
        engine.threads.attached.leaves(thread);
        signal::apply(signal::Mask(u64::MAX));
        drop_baton(context);
    } else {
        engine.finish_events();
        record::ended(engine, Ending::Exit(a[0] as i32));
    }
    sys::exit_group(a[0] as i32)
}

/// In a new child: the calling thread is the only one.
pub fn after_fork_in_child(engine: &mut Engine, thread: &mut Thread) {
    arena::after_fork();
    thread.signals.held = signal::Inbox::default();
    thread.set_tid(sys::gettid());
    baton::after_fork(&thread.shared);
    thread.foreign = false;
    if let Some(actions) = thread.signals.actions.take() {
        engine.process.actions = *actions;
    }
    let before = engine.process.numbers;
    engine.process.numbers = before.of_child(engine.config.proc);
    // The other threads' memory is a copy that nobody will use.
    engine.threads.list.clear();
    engine.threads.first = thread;
    engine.threads.live = 1;
    if engine.observed.ring.is_some() {
        // The parent's ring is shared memory.
        // What its parent calls it is what it is called, unless that has another namespace itself.
        engine.restart_events(before.is_hosts().then_some(before.host));
        engine.listen_as(thread.tid());
    }
    provenance::settle(false);
    engine.cpu.tag_mask = provenance::mask(thread.calls.heap.is_some());
    record::forked(engine, thread.tid(), before.host);
    start::follow_host(&engine.config);
}
