//! System calls: which of them the engine makes itself, changes, or refuses. Everything else goes
//! to the kernel as it is.
//!
//! * [`memory`]: the address space is the engine's to arrange;
//! * [`process`]: threads, children, the end; [`execute`]: another program;
//! * [`seccomp`]: what the guest forbids itself;
//! * [`signals`]: dispositions, masks, frames;
//! * [`files`]: what would show the runner instead of the guest.

pub mod execute;
pub mod files;
pub mod make;
pub mod memory;
pub mod process;
pub mod seccomp;
pub mod signals;
pub mod trace;
pub mod tracee;

pub use process::after_fork_in_child;

use super::context::Context;
use super::engine::Engine;
use super::futex;
use super::record;

/// What is to happen with a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The engine has done it; this is the answer.
    Answer(i64),
    /// The thread's registers are already what they must be.
    Resumed,
    /// The kernel is to do it.
    Kernel {
        /// Number.
        number: u64,
        /// Arguments.
        arguments: [u64; 6],
        /// Whether it may take long, so that other threads should run meanwhile.
        blocks: bool,
    },
}

impl Outcome {
    /// An error number as the answer.
    pub fn error(number: i32) -> Self {
        Self::Answer(-i64::from(number))
    }
}

/// Decides about a system call.
pub fn dispatch(context: &mut Context, number: u64, a: [u64; 6]) -> Outcome {
    if let Some(outcome) = seccomp::ask(context, number, a) {
        return outcome;
    }
    if number as i64 == libc::SYS_futex
        && context.engine().is_recorded()
        && let Some(outcome) = futex::call(context, a)
    {
        return outcome;
    }
    let engine = context.engine();
    if let Some(outcome) = record::decide(engine, number, a) {
        return outcome;
    }
    let soon = returns_at_once(number as i64) || record::stays_here(engine, number, a);
    let pass = Outcome::Kernel { number, arguments: a, blocks: !soon };
    let groups = [about_memory, about_signals, about_processes];
    match groups.iter().find_map(|group| group(context, number as i64, a, &pass)) {
        Some(outcome) => outcome,
        None => about_files(context.engine(), number, a, pass),
    }
}

/// Calls that arrange the address space.
fn about_memory(context: &mut Context, number: i64, a: [u64; 6], _: &Outcome) -> Option<Outcome> {
    let engine = context.engine();
    Some(match number {
        libc::SYS_mmap => memory::mmap(engine, a),
        libc::SYS_munmap => memory::munmap(engine, a),
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => memory::mprotect(engine, a),
        libc::SYS_mremap => memory::mremap(engine, a),
        libc::SYS_brk => memory::brk(engine, a),
        libc::SYS_shmat => memory::shmat(engine, a),
        libc::SYS_shmdt => memory::shmdt(engine, a),
        libc::SYS_pkey_alloc => Outcome::error(libc::ENOSPC),
        libc::SYS_remap_file_pages | libc::SYS_userfaultfd => Outcome::error(libc::ENOSYS),
        _ => return None,
    })
}

/// Calls about signals.
fn about_signals(
    context: &mut Context,
    number: i64,
    a: [u64; 6],
    pass: &Outcome,
) -> Option<Outcome> {
    let (engine, thread) = context.parts();
    Some(match number {
        libc::SYS_rt_sigaction => signals::action(engine.actions_of(thread), a),
        libc::SYS_rt_sigprocmask => signals::mask(thread, a),
        libc::SYS_rt_sigpending => signals::pending(thread, a, *pass),
        libc::SYS_rt_sigtimedwait => signals::wait(thread, a, *pass),
        libc::SYS_rt_sigreturn => signals::give_back(context),
        libc::SYS_sigaltstack => signals::stack(engine, thread, a),
        libc::SYS_rt_sigsuspend
        | libc::SYS_ppoll
        | libc::SYS_pselect6
        | libc::SYS_epoll_pwait
        | libc::SYS_epoll_pwait2 => {
            thread.signals.suspended = true;
            *pass
        }
        _ => return None,
    })
}

/// Calls about threads and processes, and what they may do.
fn about_processes(
    context: &mut Context,
    number: i64,
    a: [u64; 6],
    pass: &Outcome,
) -> Option<Outcome> {
    const PATH_HERE: i32 = libc::AT_FDCWD;
    let (engine, thread) = context.parts();
    let recorded = engine.is_recorded();
    Some(match number {
        libc::SYS_clone => process::clone(context, a),
        libc::SYS_fork => process::fork(context, libc::SIGCHLD as u64, [0; 6]),
        libc::SYS_vfork => {
            let flags = libc::SIGCHLD | libc::CLONE_VFORK | libc::CLONE_VM;
            process::fork(context, flags as u64, [0; 6])
        }
        libc::SYS_ptrace => trace::ptrace(engine, thread, a, *pass),
        libc::SYS_wait4 => trace::wait(engine, thread, a, *pass),
        libc::SYS_personality => process::personality(engine, a),
        libc::SYS_set_tid_address if recorded => process::set_tid_address(thread, a),
        libc::SYS_set_robust_list if recorded => process::set_robust_list(thread, a),
        libc::SYS_clone3 | libc::SYS_rseq => Outcome::error(libc::ENOSYS),
        libc::SYS_membarrier => process::membarrier(a, *pass),
        libc::SYS_execve => execute::execve(context, (PATH_HERE, a[0], 0), a[1], a[2]),
        libc::SYS_execveat => {
            execute::execve(context, (a[0] as i32, a[1], a[4] as i32), a[2], a[3])
        }
        libc::SYS_exit_group => process::exit_group(context, a),
        libc::SYS_exit => process::exit_thread(context, a),
        libc::SYS_arch_prctl => process::arch_prctl(engine, a),
        libc::SYS_io_uring_setup | libc::SYS_io_uring_enter | libc::SYS_io_uring_register => {
            Outcome::error(libc::ENOSYS)
        }
        libc::SYS_seccomp => seccomp::seccomp(engine, thread, a),
        libc::SYS_prctl if a[0] as i32 == libc::PR_SET_SECCOMP => seccomp::set(engine, thread, a),
        libc::SYS_prctl if a[0] as i32 == libc::PR_GET_SECCOMP => seccomp::get(engine, thread),
        libc::SYS_prctl if process::is_refused_prctl(a[0] as i32) => Outcome::error(libc::EINVAL),
        _ => return None,
    })
}

/// Calls about files and descriptors, and all others.
fn about_files(engine: &mut Engine, number: u64, a: [u64; 6], pass: Outcome) -> Outcome {
    match number as i64 {
        libc::SYS_close
        | libc::SYS_close_range
        | libc::SYS_dup
        | libc::SYS_dup2
        | libc::SYS_dup3
        | libc::SYS_fcntl
        | libc::SYS_fstat
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_ioctl
        | libc::SYS_lseek
        | libc::SYS_read
        | libc::SYS_write => files::descriptor_call(number, a, pass),
        libc::SYS_getdents64 => files::list_directory(engine, a),
        libc::SYS_open => files::open(engine, libc::AT_FDCWD as u64, a[0], a[1], pass),
        libc::SYS_openat => files::open(engine, a[0], a[1], a[2], pass),
        libc::SYS_readlink => files::readlink(engine, a[0], a[1], a[2], pass),
        libc::SYS_readlinkat => files::readlink(engine, a[1], a[2], a[3], pass),
        _ => pass,
    }
}

/// What the engine must learn from a call that the kernel has made.
pub fn after(engine: &mut Engine, number: u64, a: [u64; 6], answer: i64) {
    if answer < 0 && answer > -4096 {
        return;
    }
    follow_modules(engine, number, a, answer);
    match number as i64 {
        libc::SYS_ptrace => trace::after(engine, a),
        libc::SYS_io_setup if engine.log.replayer.is_none() => memory::ring_appeared(engine, a[1]),
        libc::SYS_io_destroy if engine.log.replayer.is_none() => {
            memory::ring_disappeared(engine, a[0])
        }
        _ => {}
    }
    if number as i64 == libc::SYS_rt_sigaction && engine.code.inside.tests.is_some() {
        engine.handlers_changed();
    }
    if number as i64 == libc::SYS_madvise && a[2] == libc::MADV_DONTNEED as u64 {
        engine.code_changes(a[0], a[0].saturating_add(a[1]));
    }
}

/// Functions that a plan names come and go with the files that are mapped.
fn follow_modules(engine: &mut Engine, number: u64, a: [u64; 6], answer: i64) {
    if !engine.config.plan.has_names() {
        return;
    }
    let end = |start: u64| start.saturating_add(a[1].next_multiple_of(4096));
    let executable = a[2] & libc::PROT_EXEC as u64 != 0;
    match number as i64 {
        libc::SYS_munmap => {
            engine.observed.stops.forget(a[0], end(a[0]));
            engine.blank(a[0]..end(a[0]));
        }
        libc::SYS_mmap => {
            let start = answer as u64;
            engine.observed.stops.forget(start, end(start));
            engine.blank(start..end(start));
            if executable {
                engine.announce(start..end(start));
            }
        }
        libc::SYS_mprotect if executable => {
            engine.observed.stops.forget(a[0], end(a[0]));
            engine.announce(a[0]..end(a[0]));
        }
        _ => {}
    }
}

/// Calls that never wait for anything outside this process: the baton is kept.
fn returns_at_once(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_getpid
            | libc::SYS_gettid
            | libc::SYS_getppid
            | libc::SYS_getuid
            | libc::SYS_geteuid
            | libc::SYS_getgid
            | libc::SYS_getegid
            | libc::SYS_getpgrp
            | libc::SYS_getpgid
            | libc::SYS_getsid
            | libc::SYS_gettimeofday
            | libc::SYS_clock_gettime
            | libc::SYS_clock_getres
            | libc::SYS_time
            | libc::SYS_times
            | libc::SYS_uname
            | libc::SYS_getrandom
            | libc::SYS_madvise
            | libc::SYS_lseek
            | libc::SYS_fstat
            | libc::SYS_stat
            | libc::SYS_lstat
            | libc::SYS_newfstatat
            | libc::SYS_access
            | libc::SYS_getcwd
            | libc::SYS_getrlimit
            | libc::SYS_prlimit64
            | libc::SYS_getrusage
            | libc::SYS_sysinfo
            | libc::SYS_sched_getaffinity
            | libc::SYS_set_robust_list
            | libc::SYS_set_tid_address
            | libc::SYS_rt_sigpending
            | libc::SYS_sched_getparam
            | libc::SYS_epoll_create1
            | libc::SYS_epoll_ctl
            | libc::SYS_eventfd2
            | libc::SYS_pipe
            | libc::SYS_pipe2
            | libc::SYS_dup
    )
}
