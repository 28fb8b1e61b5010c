//! Processes and threads: starting, waiting, identity, limits, scheduling, tracing, and the calls
//! that set or tell a property of the process (`prctl`, `arch_prctl`).

use super::call::{self, Call};
use super::row::Part::{Always, Answer, Fixed, IfAny, Items, OnError, Whole};
use super::row::{Row, sorted};
use super::{Before, Known, Peek, Range, files};
use base::system_call::number as n;
use std::mem::size_of;

const USAGE: u64 = size_of::<libc::rusage>() as u64;
const LIMIT: u64 = size_of::<libc::rlimit>() as u64;
/// Of `siginfo_t` `waitid` writes no more than signal, error, code, process, user and status.
const CHILD: u64 = 28;
const ANOTHER: Row = Row::Unknown("it writes into another process, or past the caller's mappings");

pub const ROWS: &[(u64, Row)] = &[
    (n::clone, Row::after(clone)),
    (n::clone3, Row::around(before_clone3, clone3)),
    (n::wait4, Row::Writes(&[IfAny(1, 4), IfAny(3, USAGE)])),
    // Zeros are written if there was nobody to wait for, or a signal came.
    (n::waitid, Row::Writes(&[Always(2, CHILD), Fixed(4, USAGE)])),
    (n::getrusage, Row::Writes(&[Fixed(1, USAGE)])),
    (n::times, Row::Writes(&[Fixed(0, size_of::<libc::tms>() as u64)])),
    (n::getrlimit, Row::Writes(&[Fixed(1, LIMIT)])),
    (n::prlimit64, Row::Writes(&[Fixed(3, LIMIT)])),
    (n::getgroups, Row::Writes(&[Items(1, 4, 0)])),
    (n::getresuid, Row::Writes(&[Fixed(0, 4), Fixed(1, 4), Fixed(2, 4)])),
    (n::getresgid, Row::Writes(&[Fixed(0, 4), Fixed(1, 4), Fixed(2, 4)])),
    (n::capget, Row::after(capabilities)),
    // The version that the kernel would have liked.
    (n::capset, Row::Writes(&[OnError(libc::EINVAL, 0, 4)])),
    (n::sched_getparam, Row::Writes(&[Fixed(1, 4)])),
    (n::sched_rr_get_interval, Row::Writes(&[Fixed(1, size_of::<libc::timespec>() as u64)])),
    (n::sched_getaffinity, Row::Writes(&[Answer(2, 1)])),
    (n::sched_getattr, Row::Writes(&[Whole(1, 2)])),
    // The size that the kernel would have liked.
    (n::sched_setattr, Row::Writes(&[OnError(libc::E2BIG, 1, 4)])),
    (n::getcpu, Row::Writes(&[Fixed(0, 4), Fixed(1, 4)])),
    (n::get_robust_list, Row::Writes(&[Fixed(1, 8), Fixed(2, 8)])),
    (n::process_vm_readv, files::VECTOR),
    (n::process_vm_writev, ANOTHER),
    (n::seccomp, Row::choice(0, SECCOMP)),
    (n::prctl, Row::choice(0, PRCTL)),
    (n::arch_prctl, Row::choice(0, ARCH_PRCTL)),
    (n::ptrace, Row::choice(0, PTRACE)),
    (n::rseq, Row::Unknown("the kernel writes whenever the thread is preempted")),
];

pub const NOTHING: &[u64] = &[
    n::fork,
    n::vfork,
    n::execve,
    n::execveat,
    n::exit,
    n::exit_group,
    n::set_tid_address,
    n::getpid,
    n::gettid,
    n::getppid,
    n::getpgid,
    n::getpgrp,
    n::getsid,
    n::setsid,
    n::setpgid,
    n::getuid,
    n::geteuid,
    n::getgid,
    n::getegid,
    n::setuid,
    n::setgid,
    n::setreuid,
    n::setregid,
    n::setresuid,
    n::setresgid,
    n::setfsuid,
    n::setfsgid,
    n::setgroups,
    n::setrlimit,
    n::getpriority,
    n::setpriority,
    n::sched_yield,
    n::sched_setparam,
    n::sched_setscheduler,
    n::sched_getscheduler,
    n::sched_get_priority_max,
    n::sched_get_priority_min,
    n::sched_setaffinity,
    n::personality,
    n::unshare,
    n::setns,
    n::kcmp,
    n::pidfd_open,
    n::pidfd_getfd,
    n::landlock_create_ruleset,
    n::landlock_add_rule,
    n::landlock_restrict_self,
];

const SECCOMP: &[(u64, Row)] = &sorted([
    (0, Row::Nothing),                // SECCOMP_SET_MODE_STRICT
    (1, Row::Nothing),                // SECCOMP_SET_MODE_FILTER
    (2, Row::Nothing),                // SECCOMP_GET_ACTION_AVAIL
    (3, Row::Writes(&[Fixed(2, 6)])), // SECCOMP_GET_NOTIF_SIZES
]);

const INT: Row = Row::Writes(&[Fixed(1, 4)]);
const LONG: Row = Row::Writes(&[Fixed(1, 8)]);

const PRCTL: &[(u64, Row)] = &sorted([
    (libc::PR_GET_PDEATHSIG as u64, INT),
    (libc::PR_GET_TSC as u64, INT),
    (libc::PR_GET_CHILD_SUBREAPER as u64, INT),
    (libc::PR_GET_NAME as u64, Row::Writes(&[Fixed(1, 16)])),
    (libc::PR_GET_TID_ADDRESS as u64, LONG),
    (libc::PR_SET_MM as u64, Row::after(memory_map)),
    (0x4155_5856, Row::Writes(&[Answer(1, 2)])), // PR_GET_AUXV
    (libc::PR_SCHED_CORE as u64, Row::Writes(&[Fixed(4, 8)])),
    (libc::PR_SET_PDEATHSIG as u64, Row::Nothing),
    (libc::PR_GET_DUMPABLE as u64, Row::Nothing),
    (libc::PR_SET_DUMPABLE as u64, Row::Nothing),
    (libc::PR_GET_UNALIGN as u64, Row::Nothing), // of another processor
    (libc::PR_SET_UNALIGN as u64, Row::Nothing),
    (libc::PR_GET_KEEPCAPS as u64, Row::Nothing),
    (libc::PR_SET_KEEPCAPS as u64, Row::Nothing),
    (libc::PR_GET_FPEMU as u64, Row::Nothing), // of another processor
    (libc::PR_SET_FPEMU as u64, Row::Nothing),
    (libc::PR_GET_FPEXC as u64, Row::Nothing), // of another processor
    (libc::PR_SET_FPEXC as u64, Row::Nothing),
    (libc::PR_GET_TIMING as u64, Row::Nothing),
    (libc::PR_SET_TIMING as u64, Row::Nothing),
    (libc::PR_SET_NAME as u64, Row::Nothing),
    (libc::PR_GET_ENDIAN as u64, Row::Nothing), // of another processor
    (libc::PR_SET_ENDIAN as u64, Row::Nothing),
    (libc::PR_GET_SECCOMP as u64, Row::Nothing),
    (libc::PR_SET_SECCOMP as u64, Row::Nothing),
    (libc::PR_CAPBSET_READ as u64, Row::Nothing),
    (libc::PR_CAPBSET_DROP as u64, Row::Nothing),
    (libc::PR_SET_TSC as u64, Row::Nothing),
    (libc::PR_GET_SECUREBITS as u64, Row::Nothing),
    (libc::PR_SET_SECUREBITS as u64, Row::Nothing),
    (libc::PR_SET_TIMERSLACK as u64, Row::Nothing),
    (libc::PR_GET_TIMERSLACK as u64, Row::Nothing),
    (libc::PR_TASK_PERF_EVENTS_DISABLE as u64, Row::Nothing),
    (libc::PR_TASK_PERF_EVENTS_ENABLE as u64, Row::Nothing),
    (libc::PR_MCE_KILL as u64, Row::Nothing),
    (libc::PR_MCE_KILL_GET as u64, Row::Nothing),
    (libc::PR_SET_PTRACER as u64, Row::Nothing),
    (libc::PR_SET_CHILD_SUBREAPER as u64, Row::Nothing),
    (libc::PR_SET_NO_NEW_PRIVS as u64, Row::Nothing),
    (libc::PR_GET_NO_NEW_PRIVS as u64, Row::Nothing),
    (libc::PR_SET_THP_DISABLE as u64, Row::Nothing),
    (libc::PR_GET_THP_DISABLE as u64, Row::Nothing),
    (libc::PR_SET_FP_MODE as u64, Row::Nothing),
    (libc::PR_GET_FP_MODE as u64, Row::Nothing),
    (libc::PR_CAP_AMBIENT as u64, Row::Nothing),
    (52, Row::Nothing),          // PR_GET_SPECULATION_CTRL
    (53, Row::Nothing),          // PR_SET_SPECULATION_CTRL
    (57, Row::Nothing),          // PR_SET_IO_FLUSHER
    (58, Row::Nothing),          // PR_GET_IO_FLUSHER
    (59, Row::Nothing),          // PR_SET_SYSCALL_USER_DISPATCH
    (65, Row::Nothing),          // PR_SET_MDWE
    (66, Row::Nothing),          // PR_GET_MDWE
    (67, Row::Nothing),          // PR_SET_MEMORY_MERGE
    (68, Row::Nothing),          // PR_GET_MEMORY_MERGE
    (74, Row::Nothing),          // PR_GET_SHADOW_STACK_STATUS, of another processor
    (75, Row::Nothing),          // PR_SET_SHADOW_STACK_STATUS
    (76, Row::Nothing),          // PR_LOCK_SHADOW_STACK_STATUS
    (77, Row::Nothing),          // PR_TIMER_CREATE_RESTORE_IDS
    (78, Row::Nothing),          // PR_FUTEX_HASH
    (0x5356_4d41, Row::Nothing), // PR_SET_VMA
]);

const ARCH_PRCTL: &[(u64, Row)] = &sorted([
    (0x1001, Row::Nothing), // ARCH_SET_GS
    (0x1002, Row::Nothing), // ARCH_SET_FS
    (0x1003, LONG),         // ARCH_GET_FS
    (0x1004, LONG),         // ARCH_GET_GS
    (0x1011, Row::Nothing), // ARCH_GET_CPUID
    (0x1012, Row::Nothing), // ARCH_SET_CPUID
    (0x1021, LONG),         // ARCH_GET_XCOMP_SUPP
    (0x1022, LONG),         // ARCH_GET_XCOMP_PERM
    (0x1023, Row::Nothing), // ARCH_REQ_XCOMP_PERM
    (0x1024, LONG),         // ARCH_GET_XCOMP_GUEST_PERM
    (0x1025, Row::Nothing), // ARCH_REQ_XCOMP_GUEST_PERM
    (0x2001, Row::Nothing), // ARCH_MAP_VDSO_X32
    (0x2002, Row::Nothing), // ARCH_MAP_VDSO_32
    (0x2003, Row::Nothing), // ARCH_MAP_VDSO_64
    (0x3001, Row::Nothing), // ARCH_CET_STATUS, as libraries probe for it; never merged
    (0x4001, LONG),         // ARCH_GET_UNTAG_MASK
    (0x4002, Row::Nothing), // ARCH_ENABLE_TAGGED_ADDR
    (0x4003, LONG),         // ARCH_GET_MAX_TAG_BITS
    (0x4004, Row::Nothing), // ARCH_FORCE_TAGGED_SVA
    (0x5001, Row::Nothing), // ARCH_SHSTK_ENABLE
    (0x5002, Row::Nothing), // ARCH_SHSTK_DISABLE
    (0x5005, LONG),         // ARCH_SHSTK_STATUS
]);

/// Requests of a tracer. What is written into the traced process is not the caller's memory.
const PTRACE: &[(u64, Row)] = &sorted([
    (0, Row::Nothing),                // PTRACE_TRACEME
    (1, Row::Writes(&[Fixed(3, 8)])), // PTRACE_PEEKTEXT
    (2, Row::Writes(&[Fixed(3, 8)])), // PTRACE_PEEKDATA
    (3, Row::Writes(&[Fixed(3, 8)])), // PTRACE_PEEKUSER
    (4, Row::Nothing),                // PTRACE_POKETEXT
    (5, Row::Nothing),                // PTRACE_POKEDATA
    (6, Row::Nothing),                // PTRACE_POKEUSER
    (7, Row::Nothing),                // PTRACE_CONT
    (8, Row::Nothing),                // PTRACE_KILL
    (9, Row::Nothing),                // PTRACE_SINGLESTEP
    (12, Row::Writes(&[Fixed(3, size_of::<libc::user_regs_struct>() as u64)])),
    (13, Row::Nothing), // PTRACE_SETREGS
    (14, Row::Writes(&[Fixed(3, size_of::<libc::user_fpregs_struct>() as u64)])),
    (15, Row::Nothing),                                 // PTRACE_SETFPREGS
    (16, Row::Nothing),                                 // PTRACE_ATTACH
    (17, Row::Nothing),                                 // PTRACE_DETACH
    (24, Row::Nothing),                                 // PTRACE_SYSCALL
    (25, Row::Writes(&[Fixed(3, 16)])),                 // PTRACE_GET_THREAD_AREA
    (30, Row::after(traced_base)),                      // PTRACE_ARCH_PRCTL
    (31, Row::Nothing),                                 // PTRACE_SYSEMU
    (33, Row::Nothing),                                 // PTRACE_SINGLEBLOCK
    (0x4200, Row::Nothing),                             // PTRACE_SETOPTIONS
    (0x4201, Row::Writes(&[Fixed(3, 8)])),              // PTRACE_GETEVENTMSG
    (0x4202, Row::Writes(&[Fixed(3, 128)])),            // PTRACE_GETSIGINFO
    (0x4203, Row::Nothing),                             // PTRACE_SETSIGINFO
    (0x4204, Row::around(before_registers, registers)), // PTRACE_GETREGSET
    // It tells how much it took.
    (0x4205, Row::after(registers_taken)),  // PTRACE_SETREGSET
    (0x4206, Row::Nothing),                 // PTRACE_SEIZE
    (0x4207, Row::Nothing),                 // PTRACE_INTERRUPT
    (0x4208, Row::Nothing),                 // PTRACE_LISTEN
    (0x4209, Row::after(queued)),           // PTRACE_PEEKSIGINFO
    (0x420a, Row::Writes(&[Whole(3, 2)])),  // PTRACE_GETSIGMASK
    (0x420b, Row::Nothing),                 // PTRACE_SETSIGMASK
    (0x420e, Row::Writes(&[Answer(3, 2)])), // PTRACE_GET_SYSCALL_INFO
    (0x420f, Row::Writes(&[Answer(3, 2)])), // PTRACE_GET_RSEQ_CONFIGURATION
]);

/// Thread numbers are written in the parent, in the child, or both, as flags ask. A child with its
/// own memory sees 0 as the answer.
fn clone(call: &mut Call<'_>) -> Known {
    let [flags, _, parent, child, ..] = call.arguments;
    started(call, flags, [parent, child, parent]);
    Known::Yes
}

/// `struct clone_args`: flags, and where three numbers go.
fn before_clone3(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    before.words = [call::long(memory, a[0]), 0];
    before.pieces = [8, 16, 24]
        .map(|at| Range { address: call::long(memory, a[0].wrapping_add(at)), length: 4 })
        .to_vec();
}

fn clone3(call: &mut Call<'_>) -> Known {
    if let [descriptor, child, parent] = call.before.pieces[..] {
        let places = [parent.address, child.address, descriptor.address];
        started(call, call.before.words[0], places);
    }
    Known::Yes
}

fn started(call: &mut Call<'_>, flags: u64, [parent, child, descriptor]: [u64; 3]) {
    if !call.wrote() {
        return;
    }
    let wants = |flag: i32| flags & u64::from(flag.cast_unsigned()) != 0;
    if wants(libc::CLONE_PARENT_SETTID) {
        call.put(parent, 4);
    }
    if wants(libc::CLONE_PIDFD) {
        call.put(descriptor, 4);
    }
    let shares = wants(libc::CLONE_VM) || call.answer == 0;
    if wants(libc::CLONE_CHILD_SETTID) && shares {
        call.put(child, 4);
    }
}

/// The header names a version; if the kernel does not know it, it writes the one that it likes.
fn capabilities(call: &mut Call<'_>) -> Known {
    const FIRST_VERSION: u64 = 0x1998_0330;
    let [header, data, ..] = call.arguments;
    if call.wrote() || call.is(libc::EINVAL) {
        let length = if call.word(header) == FIRST_VERSION { 12 } else { 24 };
        call.put(header, 4);
        call.put(data, length);
    }
    Known::Yes
}

/// Of all that `PR_SET_MM` can do only one request answers: how large its structure is.
fn memory_map(call: &mut Call<'_>) -> Known {
    const MAP_SIZE: u64 = 15;
    if call.wrote() && call.arguments[1] == MAP_SIZE {
        call.put(call.arguments[2], 4);
    }
    Known::Yes
}

/// An `iovec` that says where registers go, and is told how many bytes they were.
fn before_registers(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    call::pieces(memory, a[3], 1, &mut before.pieces);
}

fn registers(call: &mut Call<'_>) -> Known {
    if call.wrote() {
        let vector = call.arguments[3];
        let length = vector.wrapping_add(8);
        let before = call.before;
        let told = if call.failed() { u64::MAX } else { call::long(call.memory, length) };
        call.spread(&before.pieces, told);
        call.put(length, 8);
    }
    Known::Yes
}

/// `PTRACE_ARCH_PRCTL` has its request last, and before it where the base goes.
fn traced_base(call: &mut Call<'_>) -> Known {
    const GET: std::ops::RangeInclusive<u64> = 0x1003..=0x1004;
    if call.wrote() && GET.contains(&call.arguments[3]) {
        call.put(call.arguments[2], 8);
    }
    Known::Yes
}

fn registers_taken(call: &mut Call<'_>) -> Known {
    if call.wrote() {
        call.put(call.arguments[3].wrapping_add(8), 8);
    }
    Known::Yes
}

/// As many signals as the answer says.
fn queued(call: &mut Call<'_>) -> Known {
    const SIGNAL: u64 = size_of::<libc::siginfo_t>() as u64;
    if call.wrote() {
        call.put(call.arguments[3], call.amount().min(0x1000).saturating_mul(SIGNAL));
    }
    Known::Yes
}
