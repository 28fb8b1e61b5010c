//! Threads, children, `execve` and the end.

use super::Outcome;
use super::files;
use crate::config::{Children, Config, VARIABLE};
use crate::image::{self, Unusable};
use crate::processor::user_end;
use crate::runner::cpu::cpu;
use crate::runner::engine::{self, Engine};
use crate::runner::stack::{Block, clone_on};
use crate::runner::sys::{self, syscall};
use crate::runner::thread::Thread;
use crate::runner::{arena, baton, futex, guest, owners, record, signal, start};
use recording::log::Ending;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;

/// `arch_prctl`: the base of FS is in the saved registers while Rust runs.
pub fn arch_prctl(a: [u64; 6]) -> Outcome {
    match a[0] {
        ARCH_SET_FS if a[1] >= user_end(engine::engine().config.quirks.address_bits) => {
            Outcome::error(libc::EPERM)
        }
        ARCH_SET_FS => {
            cpu().registers.fs = a[1];
            Outcome::Answer(0)
        }
        ARCH_GET_FS => {
            use crate::runner::signal::frame::GuestMemory;
            let written = guest::Checked.write(a[1], &cpu().registers.fs.to_le_bytes());
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

fn set_personality(persona: u32) {
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
pub fn clone(engine: &mut Engine, thread: &mut Thread, a: [u64; 6]) -> Outcome {
    let flags = a[0];
    if flags & libc::CLONE_THREAD as u64 != 0 {
        return new_thread(engine, thread, a);
    }
    fork(engine, thread, flags, a)
}

fn new_thread(engine: &mut Engine, parent: &mut Thread, a: [u64; 6]) -> Outcome {
    let [flags, stack, parent_tid, child_tid, tls, _] = a;
    let needed = (libc::CLONE_VM | libc::CLONE_SIGHAND) as u64;
    if flags & needed != needed {
        return Outcome::error(libc::EINVAL);
    }
    let Some(block) = free_block(engine) else { return Outcome::error(libc::EAGAIN) };
    let mut child = child_of(parent, block, flags, stack, tls);
    let mut kept = flags & !(libc::CLONE_SETTLS | libc::CLONE_PARENT_SETTID) as u64;
    if record::is_on() {
        // The kernel must not write to the guest's memory at a time of its own choice.
        kept &= !(libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID) as u64;
        child.set_clear_tid(flags, child_tid);
    }
    let thread = Box::into_raw(child);
    block.set_owner(thread);
    // No signal may come to the new thread before it has a stack for the handler.
    signal::apply(signal::Mask(u64::MAX));
    // SAFETY: nobody else has it yet.
    unsafe { (*thread).admitted = record::is_on() };
    // SAFETY: the block is free, `run` takes a thread; the kernel writes the child's number where
    // the guest asked for it.
    let tid = unsafe { clone_on(block, kept, engine::run, thread as u64, child_tid) };
    signal::apply(parent.mask);
    if tid < 0 {
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(thread) });
        return Outcome::Answer(tid);
    }
    engine.threads.push(thread);
    engine.live += 1;
    if record::is_on() {
        // SAFETY: it waits for the baton until it is in the queue and its turn comes.
        unsafe {
            (*thread).tid = tid as i32;
            baton::admit(thread);
        }
    }
    tell_numbers(flags, tid as i32, parent_tid, child_tid);
    Outcome::Answer(tid)
}

/// Tells parent and child the child's number, where they asked for it.
pub fn tell_numbers(flags: u64, tid: i32, parent_tid: u64, child_tid: u64) {
    use crate::runner::signal::frame::GuestMemory;
    if flags & libc::CLONE_PARENT_SETTID as u64 != 0 {
        guest::Checked.write(parent_tid, &tid.to_le_bytes());
    }
    if flags & libc::CLONE_CHILD_SETTID as u64 != 0 {
        guest::Checked.write(child_tid, &tid.to_le_bytes());
    }
}

/// A copy of a thread that goes on with another stack and thread pointer.
pub fn child_of(parent: &Thread, block: Block, flags: u64, stack: u64, tls: u64) -> Box<Thread> {
    let mut registers = cpu().registers;
    registers.general[0] = 0;
    if stack != 0 {
        registers.general[4] = stack;
    }
    if flags & libc::CLONE_SETTLS as u64 != 0 {
        registers.fs = tls;
    }
    let mut thread = Thread::new(block, registers);
    thread.mask = parent.mask;
    thread.foreign = parent.foreign;
    thread.own_actions = parent.own_actions.clone();
    thread.filters = parent.filters.clone();
    *thread.vector = (*parent.vector).clone();
    thread
}

/// A number that no thread has.
const NOBODY: i32 = i32::MIN + 1;

/// A stack block that nobody uses: one of a thread that has ended, or a new one.
fn free_block(engine: &mut Engine) -> Option<Block> {
    let ended = engine.threads.iter().position(|thread| {
        // SAFETY: threads in the list have not been freed.
        let (tid, foreign) = unsafe { ((**thread).tid, (**thread).foreign) };
        let lasts = tid > 0 && !foreign;
        // By its number alone: a process that shares our memory has its threads for itself.
        // SAFETY: signal 0 only asks whether the thread exists.
        let gone = || unsafe { syscall!(libc::SYS_tkill, tid.unsigned_abs(), 0) } == -i64::from(libc::ESRCH);
        !lasts && gone()
    });
    if let Some(index) = ended {
        let thread = engine.threads.swap_remove(index);
        // SAFETY: its kernel thread is gone, so nobody refers to it.
        return Some(unsafe { Box::from_raw(thread) }.block);
    }
    let number = engine.blocks;
    engine.blocks += 1;
    Block::map(number).ok()
}

/// `exit`: one thread ends.
pub fn exit_thread(engine: &mut Engine, thread: &mut Thread, a: [u64; 6]) -> Outcome {
    engine.attached.leaves(thread);
    // One that shares our memory is another process: what is left here does not depend on it.
    engine.live -= usize::from(!thread.foreign);
    if std::ptr::eq(engine.first, thread) {
        engine.first = std::ptr::null_mut();
    }
    // Only of those that the kernel was not told of.
    thread.release();
    if thread.clear_tid != 0 {
        futex::wake_one(thread.clear_tid);
    }
    if engine.live == 0 && !thread.foreign {
        engine.finish_events();
        record::ended(engine, Ending::Exit(a[0] as i32));
    }
    // A negative number marks the block as free once the kernel thread is gone.
    let tid = thread.tid;
    signal::apply(signal::Mask(u64::MAX));
    engine::drop_baton(thread);
    thread.tid = -tid;
    loop {
        // SAFETY: ends this kernel thread; it holds nothing.
        unsafe { syscall!(libc::SYS_exit, a[0]) };
    }
}

/// `set_tid_address`, when the kernel is not to know.
pub fn set_tid_address(thread: &mut Thread, a: [u64; 6]) -> Outcome {
    thread.clear_tid = a[0];
    Outcome::Answer(i64::from(thread.tid))
}

/// `set_robust_list`, when the kernel is not to know.
pub fn set_robust_list(thread: &mut Thread, a: [u64; 6]) -> Outcome {
    const HEAD: u64 = 24;
    if a[1] != HEAD {
        return Outcome::error(libc::EINVAL);
    }
    thread.robust_list = a[0];
    Outcome::Answer(0)
}

/// A child process.
pub fn fork(engine: &mut Engine, thread: &mut Thread, flags: u64, a: [u64; 6]) -> Outcome {
    if flags & libc::CLONE_VM as u64 != 0 {
        return sharing_child(engine, thread, flags, a);
    }
    let [_, _, parent_tid, child_tid, ..] = a;
    let kept = flags & !(libc::CLONE_SETTLS as u64);
    signal::apply(signal::Mask(u64::MAX));
    // SAFETY: without CLONE_VM the child has its own copy of this stack.
    let pid = unsafe { syscall!(libc::SYS_clone, kept, 0, parent_tid, child_tid, 0) };
    if pid == 0 {
        after_fork_in_child(thread);
        begin_child(a);
    } else if pid > 0 {
        engine.record_fork(pid as i32);
    }
    signal::apply(thread.mask);
    Outcome::Answer(pid)
}

/// In a child with a copy of its parent's memory: the stack and thread pointer that it was given.
pub fn begin_child(a: [u64; 6]) {
    let [flags, stack, _, _, tls, _] = a;
    if stack != 0 {
        cpu().registers.general[4] = stack;
    }
    if flags & libc::CLONE_SETTLS as u64 != 0 {
        cpu().registers.fs = tls;
    }
}

/// A child process that shares the guest's memory, and so the engine and its baton: to us it is a
/// thread with another process number. With CLONE_VFORK the kernel holds the parent until the
/// child has ended or executed another program.
fn sharing_child(engine: &mut Engine, thread: &mut Thread, flags: u64, a: [u64; 6]) -> Outcome {
    let [_, stack, parent_tid, child_tid, tls, _] = a;
    let Some(block) = free_block(engine) else { return Outcome::error(libc::EAGAIN) };
    let child = Box::into_raw(child_of(thread, block, flags, stack, tls));
    block.set_owner(child);
    let shares_actions = flags & libc::CLONE_SIGHAND as u64 != 0;
    let actions = (!shares_actions).then(|| Box::new(engine.actions_of(thread).clone()));
    // SAFETY: just made.
    unsafe {
        (*child).foreign = true;
        (*child).own_actions = actions;
    }
    let kept = flags & !((libc::CLONE_SETTLS | libc::CLONE_PARENT_SETTID) as u64);
    signal::apply(signal::Mask(u64::MAX));
    engine::drop_baton(thread);
    // SAFETY: the block is free and `run` takes a thread; nothing of the engine is borrowed.
    let pid = unsafe { clone_on(block, kept, engine::run, child as u64, child_tid) };
    // SAFETY: our own thread.
    unsafe { engine::take_baton(thread) };
    let engine = engine::engine();
    if pid > 0 {
        // SAFETY: the child has the same number for itself.
        unsafe { (*child).tid = pid as i32 };
        engine.threads.push(child);
    } else {
        // SAFETY: it never ran: its block is free.
        unsafe { (*child).tid = NOBODY };
        engine.threads.push(child);
    }
    signal::apply(thread.mask);
    if pid > 0 && flags & libc::CLONE_PARENT_SETTID as u64 != 0 {
        use crate::runner::signal::frame::GuestMemory;
        guest::Checked.write(parent_tid, &(pid as i32).to_le_bytes());
    }
    Outcome::Answer(pid)
}

/// `exit_group`: the whole process ends. One that shares memory leaves the baton behind.
pub fn exit_group(thread: &mut Thread, a: [u64; 6]) -> Outcome {
    if thread.foreign {
        engine::engine().attached.leaves(thread);
        signal::apply(signal::Mask(u64::MAX));
        engine::drop_baton(thread);
    } else {
        engine::engine().finish_events();
        record::ended(engine::engine(), Ending::Exit(a[0] as i32));
    }
    sys::exit_group(a[0] as i32)
}

/// In a new child: the calling thread is the only one.
pub fn after_fork_in_child(thread: &mut Thread) {
    arena::after_fork();
    thread.held = signal::Inbox::default();
    thread.tid = sys::gettid();
    baton::after_fork(thread);
    thread.foreign = false;
    let engine = engine::engine();
    if let Some(actions) = thread.own_actions.take() {
        engine.actions = *actions;
    }
    let before = engine.numbers;
    engine.numbers = before.of_child(engine.config.proc);
    // The other threads' memory is a copy that nobody will use.
    engine.threads.clear();
    engine.first = thread;
    engine.live = 1;
    if engine.ring.is_some() {
        // The parent's ring is shared memory.
        // What its parent calls it is what it is called, unless that has another namespace itself.
        engine.restart_events(before.is_hosts().then_some(before.host));
        engine.listen_as(thread.tid);
    }
    owners::settle(false);
    cpu().owner_mask = owners::mask(thread.allocating.is_some());
    record::forked(engine, thread.tid, before.host);
    start::follow_host(&engine.config);
}

/// `execve` and `execveat`: the runner executes itself, with the new program to load.
pub fn execve(
    engine: &mut Engine,
    thread: &mut Thread,
    directory: i32,
    path: u64,
    arguments: u64,
    environment: u64,
    flags: i32,
) -> Outcome {
    let given = (|| {
        Ok((
            guest::read_string(path)?,
            guest::read_strings(arguments)?,
            guest::read_strings(environment)?,
        ))
    })();
    let (path, arguments, mut environment) = match given {
        Ok(given) => given,
        Err(error) => return Outcome::error(error),
    };
    let path = match full_path(engine, directory, path, flags) {
        Ok(path) => path,
        Err(error) => return Outcome::error(error),
    };
    let shown = PathBuf::from(OsString::from_vec(path.clone()));
    match image::resolve(&shown) {
        Ok(_) if engine.config.children == Children::Follow && is_traced_by_guest() => {
            engine::note(&format!(
                "{} is started by a debugger or tracer: it runs natively, unobserved",
                shown.display()
            ));
            return execute_natively(thread, &path, &arguments, &environment);
        }
        Ok(_) if engine.config.children == Children::Follow => {}
        Ok(_) => return execute_natively(thread, &path, &arguments, &environment),
        Err(why @ (Unusable::Setuid | Unusable::WrongKind(_) | Unusable::Place(_))) => {
            engine::note(&format!(
                "{} {why}: this child runs natively, unobserved",
                shown.display()
            ));
            return execute_natively(thread, &path, &arguments, &environment);
        }
        Err(why) => return Outcome::error(error_number(&why)),
    }
    let plan = engine.config.plan.for_another_program();
    let mut config = Config { program: path, plan, ..engine.config.clone() };
    if let Some(recording) = &mut config.recording {
        recording.executed = true;
    }
    let Some(descriptor) = write_config(&config) else { return Outcome::error(libc::ENOMEM) };
    environment.push(format!("{VARIABLE}={descriptor}").into_bytes());
    let arguments = if arguments.is_empty() { vec![Vec::new()] } else { arguments };
    let runner = engine.config.executable;
    let outcome = execute(thread, Some(runner), b"", &arguments, &environment);
    // SAFETY: the descriptor is ours; the call failed.
    unsafe { syscall!(libc::SYS_close, descriptor) };
    files::keep_spare();
    outcome
}

fn full_path(engine: &Engine, directory: i32, path: Vec<u8>, flags: i32) -> Result<Vec<u8>, i32> {
    if path.is_empty() && flags & libc::AT_EMPTY_PATH == 0 {
        return Err(libc::ENOENT);
    }
    if path.is_empty() {
        return Ok(path_of_descriptor(directory));
    }
    if files::is_own_executable(&path) {
        return Ok(engine.executable.clone().into_os_string().into_vec());
    }
    if path[0] == b'/' || directory == libc::AT_FDCWD {
        return Ok(path);
    }
    let mut full = format!("/proc/self/fd/{directory}/").into_bytes();
    full.extend(path);
    Ok(full)
}

/// A path that still leads to an open file after `execve`, which may close the descriptor.
fn path_of_descriptor(descriptor: i32) -> Vec<u8> {
    let own = PathBuf::from(format!("/proc/thread-self/fd/{descriptor}"));
    let same = |path: &PathBuf| {
        use std::os::unix::fs::MetadataExt;
        let (Ok(one), Ok(other)) = (own.metadata(), path.metadata()) else { return false };
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    if let Some(path) = std::fs::read_link(&own).ok().filter(same) {
        return path.into_os_string().into_vec();
    }
    let high = sys::duplicate_high(descriptor, false);
    format!("/proc/self/fd/{high}").into_bytes()
}

fn error_number(why: &Unusable) -> i32 {
    match why {
        Unusable::Io(error) => error.raw_os_error().unwrap_or(libc::ENOEXEC),
        Unusable::EmptyPath => libc::ENOENT,
        Unusable::NotAFile(_) | Unusable::NotExecutable => libc::EACCES,
        Unusable::NotElf | Unusable::Truncated | Unusable::Malformed(_) => libc::ENOEXEC,
        // An interpreter of that kind; a program is run natively.
        Unusable::WrongKind(_) | Unusable::Place(_) | Unusable::Setuid => libc::ENOEXEC,
        Unusable::Interpreter(_, inner) => match error_number(inner) {
            libc::ENOEXEC => libc::ELIBBAD,
            other => other,
        },
        Unusable::TooManyInterpreters => libc::ELOOP,
    }
}

/// The configuration of the next runner, in an anonymous file that survives `execve`.
fn write_config(config: &Config) -> Option<i32> {
    let text = serde_json::to_vec(config).ok()?;
    // The guest may have used up all descriptors: one is kept for this.
    files::give_up_spare();
    // SAFETY: the kernel reads a terminated name.
    let low = unsafe { syscall!(libc::SYS_memfd_create, c"whydunit".as_ptr(), 0) };
    if low < 0 {
        return None;
    }
    // SAFETY: descriptor calls on a descriptor of ours.
    let high = unsafe {
        let high = sys::duplicate_high(low as i32, false);
        if high >= 0 {
            syscall!(libc::SYS_close, low);
            high
        } else {
            low
        }
    };
    sys::write_all(high as i32, &text);
    Some(high as i32)
}

/// Whether another guest traces this process: it would see the runner, and put its breakpoints
/// where no code runs.
fn is_traced_by_guest() -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    match tracer.map(str::trim) {
        None | Some("0") => false,
        Some(tracer) => files::is_runner(tracer.as_ref()),
    }
}

/// Lets a program go: it sees nothing of the engine.
fn execute_natively(
    thread: &mut Thread,
    path: &[u8],
    arguments: &[Vec<u8>],
    environment: &[Vec<u8>],
) -> Outcome {
    let persona = engine::engine().config.personality;
    files::hide_from_exec(true);
    set_personality(persona);
    let outcome = execute(thread, None, path, arguments, environment);
    set_personality(persona | libc::ADDR_NO_RANDOMIZE as u32);
    files::hide_from_exec(false);
    outcome
}

/// Hands over to another program, by path or descriptor; only comes back if that fails.
fn execute(
    thread: &mut Thread,
    file: Option<i32>,
    path: &[u8],
    arguments: &[Vec<u8>],
    environment: &[Vec<u8>],
) -> Outcome {
    let terminated = |texts: &[Vec<u8>]| -> Vec<Vec<u8>> {
        texts.iter().map(|text| [text.as_slice(), b"\0"].concat()).collect()
    };
    let pointers = |texts: &[Vec<u8>]| -> Vec<*const u8> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let path = [path, b"\0"].concat();
    let (arguments, environment) = (terminated(arguments), terminated(environment));
    let (arguments, environment) = (pointers(&arguments), pointers(&environment));
    let mask = thread.mask;
    let observed = engine::engine().ring.is_some() && !thread.foreign;
    if observed {
        engine::engine().finish_events();
    }
    engine::engine().attached.leaves(thread);
    // Others may run on until the kernel ends them, as natively. Above all nobody must ask us for
    // the baton by a signal that the next program would die of.
    let shared = thread.foreign || !engine::engine().threads.is_empty();
    record::executes(engine::engine(), thread);
    // While recording nobody asks for it like that, and nobody may run when the log has ended.
    let shared = shared && (thread.foreign || !record::is_on());
    if shared {
        engine::drop_baton(thread);
    }
    // The next program inherits the guest's mask, faults and all.
    // SAFETY: the kernel only reads what it is given, all of which is alive.
    let answer = unsafe {
        syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0, 8);
        let (directory, flags) =
            file.map_or((libc::AT_FDCWD, 0), |file| (file, libc::AT_EMPTY_PATH));
        syscall!(
            libc::SYS_execveat,
            directory as i64,
            path.as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            flags
        )
    };
    if shared {
        // SAFETY: our own thread.
        unsafe { engine::take_baton(thread) };
    }
    record::not_executed(engine::engine(), thread);
    if observed {
        engine::engine().restart_events(None);
        engine::engine().listen_as(thread.tid);
    }
    signal::apply(thread.mask);
    Outcome::Answer(answer)
}
