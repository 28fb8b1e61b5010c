//! Processes and threads: starting, waiting, identity, limits, scheduling, tracing, and the calls
//! that set or tell a property of the process (`prctl`, `arch_prctl`).

use crate::call::{self, Call};
use crate::reads::Reading;
use crate::row::Part::{Always, Answer, Fixed, IfAny, Items, OnError, Whole};
use crate::row::{Row, Take, sorted};
use crate::{Before, Known, Peek, Range};
use std::mem::size_of;

const USAGE: u64 = size_of::<libc::rusage>() as u64;
const LIMIT: u64 = size_of::<libc::rlimit>() as u64;
/// Of `siginfo_t` `waitid` writes no more than signal, error, code, process, user and status.
const CHILD: u64 = 28;
const ANOTHER: Row = Row::unknown("it writes into another process, or past the caller's mappings");

system_calls! {
    56 clone(Flags, Address, Output, Output, Address), writes Row::after(clone);
    435 clone3(Update(VARIES), Size), writes Row::around(before_clone3, clone3),
        reads clone3_reads;
    61 wait4(Pid, Output, Flags, Output), writes Row::writes(&[IfAny(1, 4), IfAny(3, USAGE)]);
    // Zeros are written if there was nobody to wait for, or a signal came.
    247 waitid(Number, Pid, Output, Flags, Output),
        writes Row::writes(&[Always(2, CHILD), Fixed(4, USAGE)]);
    98 getrusage(Number, Output), writes Row::writes(&[Fixed(1, USAGE)]);
    100 times(Output), writes Row::writes(&[Fixed(0, size_of::<libc::tms>() as u64)]);
    97 getrlimit(Number, Output), writes Row::writes(&[Fixed(1, LIMIT)]);
    302 prlimit64(Pid, Number, Input(LIMIT), Output), writes Row::writes(&[Fixed(3, LIMIT)]);
    115 getgroups(Number, Output), writes Row::writes(&[Items(1, 4, 0)]);
    118 getresuid(Output, Output, Output),
        writes Row::writes(&[Fixed(0, 4), Fixed(1, 4), Fixed(2, 4)]);
    120 getresgid(Output, Output, Output),
        writes Row::writes(&[Fixed(0, 4), Fixed(1, 4), Fixed(2, 4)]);
    125 capget(Update(8), Output), writes Row::after(capabilities);
    // The version that the kernel would have liked.
    126 capset(Update(8), Input(VARIES)), writes Row::writes(&[OnError(libc::EINVAL, 0, 4)]),
        reads capset_reads;
    143 sched_getparam(Pid, Output), writes Row::writes(&[Fixed(1, 4)]);
    148 sched_rr_get_interval(Pid, Output),
        writes Row::writes(&[Fixed(1, size_of::<libc::timespec>() as u64)]);
    204 sched_getaffinity(Pid, Size, Out(1)), writes Row::writes(&[Answer(2, 1)]);
    315 sched_getattr(Pid, Out(2), Size, Flags), writes Row::writes(&[Whole(1, 2)]);
    // The size that the kernel would have liked.
    314 sched_setattr(Pid, Update(VARIES), Flags),
        writes Row::writes(&[OnError(libc::E2BIG, 1, 4)]), reads sched_setattr_reads;
    309 getcpu(Output, Output, Address), writes Row::writes(&[Fixed(0, 4), Fixed(1, 4)]);
    274 get_robust_list(Pid, Output, Output), writes Row::writes(&[Fixed(1, 8), Fixed(2, 8)]);
    310 process_vm_readv(Pid, Vector(2), Size, Vector(4), Size, Flags), writes super::files::VECTOR;
    311 process_vm_writev(Pid, DataVector(2), Size, Input(VARIES), Size, Flags),
        writes ANOTHER, reads remote_reads;
    317 seccomp(Number, Flags, Address), writes Row::choice(0, SECCOMP);
    157 prctl(Number, Address, Address, Address, Address), writes Row::choice(0, PRCTL);
    158 arch_prctl(Flags, Address), writes Row::choice(0, ARCH_PRCTL);
    101 ptrace(Number, Pid, Address, Address), writes Row::choice(0, PTRACE);
    334 rseq(Address, Size, Flags, Size),
        writes Row::unknown("the kernel writes whenever the thread is preempted");

    // Calls that write nothing into the memory of the caller.
    57 fork();
    58 vfork();
    59 execve(Path, Input(VARIES), Input(VARIES)), reads execve_reads;
    322 execveat(DirFd, Path, Input(VARIES), Input(VARIES), Flags), reads execveat_reads;
    60 exit(Number);
    231 exit_group(Number);
    218 set_tid_address(Address);
    39 getpid();
    186 gettid();
    110 getppid();
    121 getpgid(Pid);
    111 getpgrp();
    124 getsid(Pid);
    112 setsid();
    109 setpgid(Pid, Pid);
    102 getuid();
    107 geteuid();
    104 getgid();
    108 getegid();
    105 setuid(Number);
    106 setgid(Number);
    113 setreuid(Number, Number);
    114 setregid(Number, Number);
    117 setresuid(Number, Number, Number);
    119 setresgid(Number, Number, Number);
    122 setfsuid(Number);
    123 setfsgid(Number);
    116 setgroups(Number, InputItems(4, 0));
    160 setrlimit(Number, Input(LIMIT));
    140 getpriority(Number, Number);
    141 setpriority(Number, Number, Number);
    24 sched_yield();
    142 sched_setparam(Pid, Input(4));
    144 sched_setscheduler(Pid, Number, Input(4));
    145 sched_getscheduler(Pid);
    146 sched_get_priority_max(Number);
    147 sched_get_priority_min(Number);
    203 sched_setaffinity(Pid, Size, In(1));
    135 personality(Flags);
    272 unshare(Flags);
    308 setns(Fd, Flags);
    312 kcmp(Pid, Pid, Number, Size, Size);
    434 pidfd_open(Pid, Flags);
    438 pidfd_getfd(Fd, Fd, Flags);
    444 landlock_create_ruleset(In(1), Size, Flags);
    445 landlock_add_rule(Fd, Number, Input(VARIES), Flags), reads landlock_reads;
    446 landlock_restrict_self(Fd, Flags);
}

const SECCOMP: &[(u64, Row)] = &sorted([
    (0, Row::NOTHING), // SECCOMP_SET_MODE_STRICT
    (1, Row::takes(&[Take::Rule(|reading| filter_reads(reading, 2))])), // SECCOMP_SET_MODE_FILTER
    (2, Row::takes(&[Take::Bytes(2, 4)])), // SECCOMP_GET_ACTION_AVAIL
    (3, Row::writes(&[Fixed(2, 6)])), // SECCOMP_GET_NOTIF_SIZES
]);

const INT: Row = Row::writes(&[Fixed(1, 4)]);
const LONG: Row = Row::writes(&[Fixed(1, 8)]);

const PRCTL: &[(u64, Row)] = &sorted([
    (libc::PR_GET_PDEATHSIG as u64, INT),
    (libc::PR_GET_TSC as u64, INT),
    (libc::PR_GET_CHILD_SUBREAPER as u64, INT),
    (libc::PR_GET_NAME as u64, Row::writes(&[Fixed(1, 16)])),
    (libc::PR_GET_TID_ADDRESS as u64, LONG),
    (libc::PR_SET_MM as u64, Row::after(memory_map).taking(&[Take::Rule(memory_map_reads)])),
    (0x4155_5856, Row::writes(&[Answer(1, 2)])), // PR_GET_AUXV
    (libc::PR_SCHED_CORE as u64, Row::writes(&[Fixed(4, 8)])),
    (libc::PR_SET_PDEATHSIG as u64, Row::NOTHING),
    (libc::PR_GET_DUMPABLE as u64, Row::NOTHING),
    (libc::PR_SET_DUMPABLE as u64, Row::NOTHING),
    (libc::PR_GET_UNALIGN as u64, Row::NOTHING), // of another processor
    (libc::PR_SET_UNALIGN as u64, Row::NOTHING),
    (libc::PR_GET_KEEPCAPS as u64, Row::NOTHING),
    (libc::PR_SET_KEEPCAPS as u64, Row::NOTHING),
    (libc::PR_GET_FPEMU as u64, Row::NOTHING), // of another processor
    (libc::PR_SET_FPEMU as u64, Row::NOTHING),
    (libc::PR_GET_FPEXC as u64, Row::NOTHING), // of another processor
    (libc::PR_SET_FPEXC as u64, Row::NOTHING),
    (libc::PR_GET_TIMING as u64, Row::NOTHING),
    (libc::PR_SET_TIMING as u64, Row::NOTHING),
    (libc::PR_SET_NAME as u64, Row::takes(&[Take::Rule(name_reads)])),
    (libc::PR_GET_ENDIAN as u64, Row::NOTHING), // of another processor
    (libc::PR_SET_ENDIAN as u64, Row::NOTHING),
    (libc::PR_GET_SECCOMP as u64, Row::NOTHING),
    (libc::PR_SET_SECCOMP as u64, Row::takes(&[Take::Rule(set_seccomp_reads)])),
    (libc::PR_CAPBSET_READ as u64, Row::NOTHING),
    (libc::PR_CAPBSET_DROP as u64, Row::NOTHING),
    (libc::PR_SET_TSC as u64, Row::NOTHING),
    (libc::PR_GET_SECUREBITS as u64, Row::NOTHING),
    (libc::PR_SET_SECUREBITS as u64, Row::NOTHING),
    (libc::PR_SET_TIMERSLACK as u64, Row::NOTHING),
    (libc::PR_GET_TIMERSLACK as u64, Row::NOTHING),
    (libc::PR_TASK_PERF_EVENTS_DISABLE as u64, Row::NOTHING),
    (libc::PR_TASK_PERF_EVENTS_ENABLE as u64, Row::NOTHING),
    (libc::PR_MCE_KILL as u64, Row::NOTHING),
    (libc::PR_MCE_KILL_GET as u64, Row::NOTHING),
    (libc::PR_SET_PTRACER as u64, Row::NOTHING),
    (libc::PR_SET_CHILD_SUBREAPER as u64, Row::NOTHING),
    (libc::PR_SET_NO_NEW_PRIVS as u64, Row::NOTHING),
    (libc::PR_GET_NO_NEW_PRIVS as u64, Row::NOTHING),
    (libc::PR_SET_THP_DISABLE as u64, Row::NOTHING),
    (libc::PR_GET_THP_DISABLE as u64, Row::NOTHING),
    (libc::PR_SET_FP_MODE as u64, Row::NOTHING),
    (libc::PR_GET_FP_MODE as u64, Row::NOTHING),
    (libc::PR_CAP_AMBIENT as u64, Row::NOTHING),
    (52, Row::NOTHING),                          // PR_GET_SPECULATION_CTRL
    (53, Row::NOTHING),                          // PR_SET_SPECULATION_CTRL
    (57, Row::NOTHING),                          // PR_SET_IO_FLUSHER
    (58, Row::NOTHING),                          // PR_GET_IO_FLUSHER
    (59, Row::NOTHING),                          // PR_SET_SYSCALL_USER_DISPATCH
    (65, Row::NOTHING),                          // PR_SET_MDWE
    (66, Row::NOTHING),                          // PR_GET_MDWE
    (67, Row::NOTHING),                          // PR_SET_MEMORY_MERGE
    (68, Row::NOTHING),                          // PR_GET_MEMORY_MERGE
    (74, Row::NOTHING),                          // PR_GET_SHADOW_STACK_STATUS, of another processor
    (75, Row::NOTHING),                          // PR_SET_SHADOW_STACK_STATUS
    (76, Row::NOTHING),                          // PR_LOCK_SHADOW_STACK_STATUS
    (77, Row::NOTHING),                          // PR_TIMER_CREATE_RESTORE_IDS
    (78, Row::NOTHING),                          // PR_FUTEX_HASH
    (0x5356_4d41, Row::takes(&[Take::Text(4)])), // PR_SET_VMA
]);

const ARCH_PRCTL: &[(u64, Row)] = &sorted([
    (0x1001, Row::NOTHING), // ARCH_SET_GS
    (0x1002, Row::NOTHING), // ARCH_SET_FS
    (0x1003, LONG),         // ARCH_GET_FS
    (0x1004, LONG),         // ARCH_GET_GS
    (0x1011, Row::NOTHING), // ARCH_GET_CPUID
    (0x1012, Row::NOTHING), // ARCH_SET_CPUID
    (0x1021, LONG),         // ARCH_GET_XCOMP_SUPP
    (0x1022, LONG),         // ARCH_GET_XCOMP_PERM
    (0x1023, Row::NOTHING), // ARCH_REQ_XCOMP_PERM
    (0x1024, LONG),         // ARCH_GET_XCOMP_GUEST_PERM
    (0x1025, Row::NOTHING), // ARCH_REQ_XCOMP_GUEST_PERM
    (0x2001, Row::NOTHING), // ARCH_MAP_VDSO_X32
    (0x2002, Row::NOTHING), // ARCH_MAP_VDSO_32
    (0x2003, Row::NOTHING), // ARCH_MAP_VDSO_64
    (0x3001, Row::NOTHING), // ARCH_CET_STATUS, as libraries probe for it; never merged
    (0x4001, LONG),         // ARCH_GET_UNTAG_MASK
    (0x4002, Row::NOTHING), // ARCH_ENABLE_TAGGED_ADDR
    (0x4003, LONG),         // ARCH_GET_MAX_TAG_BITS
    (0x4004, Row::NOTHING), // ARCH_FORCE_TAGGED_SVA
    (0x5001, Row::NOTHING), // ARCH_SHSTK_ENABLE
    (0x5002, Row::NOTHING), // ARCH_SHSTK_DISABLE
    (0x5005, LONG),         // ARCH_SHSTK_STATUS
]);

/// Requests of a tracer. What is written into the traced process is not the caller's memory.
const PTRACE: &[(u64, Row)] = &sorted([
    (0, Row::NOTHING),                // PTRACE_TRACEME
    (1, Row::writes(&[Fixed(3, 8)])), // PTRACE_PEEKTEXT
    (2, Row::writes(&[Fixed(3, 8)])), // PTRACE_PEEKDATA
    (3, Row::writes(&[Fixed(3, 8)])), // PTRACE_PEEKUSER
    (4, Row::NOTHING),                // PTRACE_POKETEXT
    (5, Row::NOTHING),                // PTRACE_POKEDATA
    (6, Row::NOTHING),                // PTRACE_POKEUSER
    (7, Row::NOTHING),                // PTRACE_CONT
    (8, Row::NOTHING),                // PTRACE_KILL
    (9, Row::NOTHING),                // PTRACE_SINGLESTEP
    (12, Row::writes(&[Fixed(3, size_of::<libc::user_regs_struct>() as u64)])),
    (13, Row::takes(&[Take::Bytes(3, size_of::<libc::user_regs_struct>() as u64)])),
    (14, Row::writes(&[Fixed(3, size_of::<libc::user_fpregs_struct>() as u64)])),
    (15, Row::takes(&[Take::Bytes(3, size_of::<libc::user_fpregs_struct>() as u64)])),
    (16, Row::NOTHING),                           // PTRACE_ATTACH
    (17, Row::NOTHING),                           // PTRACE_DETACH
    (24, Row::NOTHING),                           // PTRACE_SYSCALL
    (25, Row::writes(&[Fixed(3, 16)])),           // PTRACE_GET_THREAD_AREA
    (30, Row::after(traced_base)),                // PTRACE_ARCH_PRCTL
    (31, Row::NOTHING),                           // PTRACE_SYSEMU
    (33, Row::NOTHING),                           // PTRACE_SINGLEBLOCK
    (0x4200, Row::NOTHING),                       // PTRACE_SETOPTIONS
    (0x4201, Row::writes(&[Fixed(3, 8)])),        // PTRACE_GETEVENTMSG
    (0x4202, Row::writes(&[Fixed(3, 128)])),      // PTRACE_GETSIGINFO
    (0x4203, Row::takes(&[Take::Bytes(3, 128)])), // PTRACE_SETSIGINFO
    // PTRACE_GETREGSET
    (0x4204, Row::around(before_registers, registers).taking(&[Take::Bytes(3, 16)])),
    // It tells how much it took.
    (0x4205, Row::after(registers_taken).taking(&[Take::Rule(registers_read)])), // PTRACE_SETREGSET
    (0x4206, Row::NOTHING),                                                      // PTRACE_SEIZE
    (0x4207, Row::NOTHING),                                                      // PTRACE_INTERRUPT
    (0x4208, Row::NOTHING),                                                      // PTRACE_LISTEN
    (0x4209, Row::after(queued).taking(&[Take::Bytes(2, 24)])), // PTRACE_PEEKSIGINFO
    (0x420a, Row::writes(&[Whole(3, 2)])),                      // PTRACE_GETSIGMASK
    (0x420b, Row::takes(&[Take::Whole(3, 2)])),                 // PTRACE_SETSIGMASK
    (0x420e, Row::writes(&[Answer(3, 2)])),                     // PTRACE_GET_SYSCALL_INFO
    (0x420f, Row::writes(&[Answer(3, 2)])),                     // PTRACE_GET_RSEQ_CONFIGURATION
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

fn execve_reads(reading: &mut Reading<'_>) {
    let [_, arguments, variables, ..] = reading.arguments;
    reading.words(arguments);
    reading.words(variables);
}

fn execveat_reads(reading: &mut Reading<'_>) {
    let [_, _, arguments, variables, ..] = reading.arguments;
    reading.words(arguments);
    reading.words(variables);
}

/// As much as the version in the header says.
fn capset_reads(reading: &mut Reading<'_>) {
    const FIRST_VERSION: u64 = 0x1998_0330;
    let [header, data, ..] = reading.arguments;
    let length = if reading.word(header) == FIRST_VERSION { 12 } else { 24 };
    reading.parameters(data, length);
}

/// `struct sched_attr` starts with its own size; 0 is the first size that there was.
fn sched_setattr_reads(reading: &mut Reading<'_>) {
    const FIRST: u64 = 48;
    let attributes = reading.arguments[1];
    let size = reading.word(attributes);
    reading.parameters(attributes, if size == 0 { FIRST } else { size.min(0x1000) });
}

/// What a rule is about says how large it is: a folder, or a port.
fn landlock_reads(reading: &mut Reading<'_>) {
    let [_, kind, rule, ..] = reading.arguments;
    reading.parameters(rule, if kind == 1 { 12 } else { 16 });
}

/// `struct sock_fprog`: how many instructions of eight bytes, and where.
fn filter_reads(reading: &mut Reading<'_>, argument: usize) {
    let program = reading.arguments[argument];
    let count = reading.word(program) & 0xffff;
    let instructions = reading.long(program.wrapping_add(8));
    reading.parameters(program, 16);
    reading.parameters(instructions, 8 * count);
}

fn set_seccomp_reads(reading: &mut Reading<'_>) {
    const FILTER: u64 = 2;
    if reading.arguments[1] == FILTER {
        filter_reads(reading, 2);
    }
}

/// A name has 15 bytes at most.
fn name_reads(reading: &mut Reading<'_>) {
    reading.short_text(reading.arguments[1], 15);
}

fn memory_map_reads(reading: &mut Reading<'_>) {
    const MAP: u64 = 14;
    let [_, request, map, length, ..] = reading.arguments;
    if request == MAP {
        reading.parameters(map, length);
    }
}

/// An `iovec` that says where registers are.
fn registers_read(reading: &mut Reading<'_>) {
    reading.vector(reading.arguments[3], 1, Some(crate::Content::Bytes));
}

fn clone3_reads(reading: &mut Reading<'_>) {
    let [given, size, ..] = reading.arguments;
    reading.parameters(given, size.min(0x1000));
}

/// Where in the other process; what is there is not the caller's memory.
fn remote_reads(reading: &mut Reading<'_>) {
    let [_, _, _, vector, count, _] = reading.arguments;
    reading.vector(vector, count, None);
}
