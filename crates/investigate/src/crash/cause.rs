//! Why a signal ended the guest, in words: from what the kernel and the processor said.

use super::instruction::{Access, Division, Stopped};
use super::memory::Kept;
use base::Address;
use base::crash::{CrashReport, Region};
use symbols::Memory;

const PROT_READ: i32 = 1;
const PROT_WRITE: i32 = 2;

/// Addresses below this are a null pointer, or a member or element of one.
const NEAR_ZERO: u64 = 1 << 16;
/// How far a fault may be from the stack pointer to be an access to the stack.
const NEAR_STACK: u64 = 1 << 20;
/// How far below its stack such a fault may be; local variables can be that large.
const BELOW_STACK: u64 = 64 << 20;

/// `si_code` of signals that the kernel raises for reasons of its own.
const KERNEL: i32 = 0x80;

const PAGE_FAULT: u64 = 14;
const GENERAL_PROTECTION: u64 = 13;
const STACK_FAULT: u64 = 12;
const FAULT_IS_WRITE: u64 = 1 << 1;
const FAULT_IS_FETCH: u64 = 1 << 4;

/// The name of a signal.
pub fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    let index = usize::try_from(signal.saturating_sub(1)).unwrap_or(usize::MAX);
    NAMES.get(index).map_or_else(|| format!("signal {signal}"), |name| (*name).to_owned())
}

/// Whether the processor found no code where it was to go on.
pub fn is_fetch(report: &CrashReport) -> bool {
    report.trap == PAGE_FAULT && report.error & FAULT_IS_FETCH != 0
}

/// What happened. `calls` are the names of the active functions that are not the program's own,
/// innermost first.
pub fn cause(report: &CrashReport, stopped: Option<&Stopped>, calls: &[&str]) -> String {
    if report.code <= 0 {
        return sent(report, calls);
    }
    match signal_name(report.signal).as_str() {
        "SIGSEGV" => segment(report, stopped),
        "SIGBUS" => bus(report, stopped),
        "SIGFPE" => arithmetic(report, stopped),
        "SIGILL" => illegal(stopped),
        "SIGTRAP" => trap(report, stopped),
        "SIGABRT" => aborted(calls),
        _ => "the kernel raised it".into(),
    }
}

/// A signal that a process sent, most often to itself.
fn sent(report: &CrashReport, calls: &[&str]) -> String {
    let itself = report.sender == report.process;
    match signal_name(report.signal).as_str() {
        "SIGABRT" if itself => aborted(calls),
        _ if itself => "the program sent it to itself".into(),
        _ if report.sender == 0 => "another process sent it".into(),
        _ => format!("process {} sent it", report.sender),
    }
}

/// Functions that lead to abort, and what it means that they do.
const ABORTERS: [(&str, &str); 13] = [
    ("__assert_fail", "an assertion failed"),
    ("__assert_fail_base", "an assertion failed"),
    ("__stack_chk_fail", "a function found its stack frame overwritten"),
    ("__fortify_fail", "a checked C function was about to write past the end of its buffer"),
    ("__chk_fail", "a checked C function was about to write past the end of its buffer"),
    ("__cxa_pure_virtual", "a pure virtual function was called"),
    ("std::terminate", "an exception was not caught"),
    ("core::panicking::panic_nounwind", "a Rust function that must not unwind panicked"),
    ("core::panicking::panic_cannot_unwind", "a Rust function that must not unwind panicked"),
    ("__rustc::rust_begin_unwind", "a Rust panic"),
    ("rust_panic", "a Rust panic"),
    (
        "std::sys::pal::unix::stack_overflow::imp::signal_handler",
        "its stack is full: endless recursion, or too large local variables",
    ),
    ("std::process::abort", "the program called std::process::abort"),
];
/// The functions of the heap, inside which the C library gives up if it finds it damaged.
const HEAP: [&str; 10] = [
    "free",
    "cfree",
    "malloc",
    "realloc",
    "calloc",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
];

/// The call furthest out says most: what leads to abort often goes through several of these.
fn aborted(calls: &[&str]) -> String {
    let named = |call: &&str| {
        let call = call.strip_prefix("__GI_").unwrap_or(call);
        // The C library's own names: `__libc_malloc`, `__GI___libc_free`, `__posix_memalign`.
        let call = call.strip_prefix("__libc_").unwrap_or(call);
        let call = if call == "__posix_memalign" { "posix_memalign" } else { call };
        let bare = call.split(['(', '<']).next().unwrap_or(call);
        let known = ABORTERS.iter().find(|(function, _)| bare == *function);
        let heap = HEAP.iter().find(|function| bare == **function);
        let damaged = |name| format!("the C library found the heap damaged inside {name}");
        known.map(|(_, words)| (*words).to_owned()).or_else(|| heap.map(damaged))
    };
    calls.iter().rev().find_map(named).unwrap_or_else(|| "it called abort".into())
}

fn segment(report: &CrashReport, stopped: Option<&Stopped>) -> String {
    // What is not the processor's is the kernel's own doing, around handlers.
    match (report.trap, report.code) {
        (PAGE_FAULT, KERNEL) => "its signal handler could not be entered: no room on its stack, \
                                 or a damaged one (sigaltstack gives it another)"
            .into(),
        (PAGE_FAULT, _) => page_fault(report, stopped),
        (GENERAL_PROTECTION, _) => protection(report, stopped),
        _ => "it returned from a signal handler to a damaged frame".into(),
    }
}

fn page_fault(report: &CrashReport, stopped: Option<&Stopped>) -> String {
    let address = report.address;
    if let Some(words) = stack_overflow(report) {
        return words;
    }
    if is_fetch(report) {
        let why = match &report.at_address {
            _ if address == 0 => "a call through a null function pointer".into(),
            _ if address < NEAR_ZERO => "close to zero: a wrong function pointer".into(),
            None => "where nothing is mapped".into(),
            Some(region) => format!("where the memory may not be executed{}", behind(region)),
        };
        return format!("it jumped to {}, {why}", Address(address).with_text());
    }
    let write = report.error & FAULT_IS_WRITE != 0;
    let access = stopped.and_then(|stopped| stopped.access_at(address));
    let verb = if write { "wrote" } else { "read" };
    format!("it {verb} {} {}", amount(access, address), state(report, write))
}

fn amount(access: Option<Access>, address: u64) -> String {
    match access {
        Some(access) => {
            let plural = if access.size == 1 { "" } else { "s" };
            format!("{} byte{plural} at {},", access.size, Address(access.address).with_text())
        }
        None => format!("address {},", Address(address).with_text()),
    }
}

/// What is wrong with the memory at the faulting address.
fn state(report: &CrashReport, write: bool) -> String {
    match &report.at_address {
        _ if report.address == 0 => "a null pointer".into(),
        _ if report.address < NEAR_ZERO => {
            "close to zero: a member or element of a null pointer".into()
        }
        None => "where nothing is mapped".into(),
        Some(region) if region.protection & (PROT_READ | PROT_WRITE) == 0 => {
            format!("where no access is allowed{}", behind(region))
        }
        Some(region) if write && region.protection & PROT_WRITE == 0 => {
            format!("where the memory is read-only{}", behind(region))
        }
        Some(region) => format!("which its mapping does not allow{}", behind(region)),
    }
}

fn behind(region: &Region) -> String {
    region.file.as_ref().map(|file| format!(" ({file})")).unwrap_or_default()
}

/// The stack grew below its end.
pub(super) fn stack_overflow(report: &CrashReport) -> Option<String> {
    let (pointer, address) = (report.general[4], report.address);
    let accessible = |region: &&Region| region.protection & PROT_WRITE != 0;
    if report.at_address.as_ref().filter(accessible).is_some() {
        return None;
    }
    let stack = report.at_stack.as_ref()?;
    // The stack pointer may have left its stack for the guard below: the stack follows.
    let bottom = if accessible(&stack) { stack.start } else { stack.end };
    let below = bottom.checked_sub(address)?;
    let close = below <= BELOW_STACK && pointer.abs_diff(address) <= NEAR_STACK;
    let size = if accessible(&stack) { stack.end.saturating_sub(stack.start) >> 10 } else { 0 };
    let room = match size {
        0 => String::new(),
        kib if kib % 1024 == 0 => format!(" of {} MiB", kib >> 10),
        kib => format!(" of {kib} KiB"),
    };
    close.then(|| {
        format!("its stack{room} is full: endless recursion, or too large local variables")
    })
}

/// The processor gave no address: the instruction must tell.
fn protection(report: &CrashReport, stopped: Option<&Stopped>) -> String {
    let Some(stopped) = stopped else {
        return format!(
            "it jumped to {}, which is no address at all: a damaged return address or function \
             pointer",
            Address(report.pc).with_text()
        );
    };
    if let Some(access) = stopped.not_canonical() {
        let address = Address(access.address).with_text();
        return format!("it used {address} as a pointer, which is no address at all");
    }
    if let Some(access) = stopped.misaligned() {
        let (size, address) = (access.size, access.address);
        return format!(
            "its instruction needs an address aligned to {size} bytes, got {address:#x}"
        );
    }
    if stopped.returns() {
        return "it returned to what is no address at all: its return address was overwritten"
            .into();
    }
    if stopped.is_privileged() {
        return "it executed an instruction that only the kernel may execute".into();
    }
    "the processor refused the instruction".into()
}

fn bus(report: &CrashReport, stopped: Option<&Stopped>) -> String {
    const MISALIGNED: i32 = 1;
    const NO_SUCH_PLACE: i32 = 2;
    match (report.code, report.trap) {
        (_, GENERAL_PROTECTION | STACK_FAULT) => protection(report, stopped),
        (MISALIGNED, _) => format!(
            "it used address {:#x} without the alignment that it asked the processor to check",
            report.address
        ),
        (NO_SUCH_PLACE, _) => {
            let file = report.at_address.as_ref().and_then(|region| region.file.clone());
            let file = file.unwrap_or_else(|| "the mapped file".into());
            format!("it used address {:#x}, behind the end of {file}", report.address)
        }
        _ => format!("the memory at {:#x} is not to be had", report.address),
    }
}

fn arithmetic(report: &CrashReport, stopped: Option<&Stopped>) -> String {
    let memory = |address, size: usize| {
        let mut bytes = [0; 8];
        let read = Kept(&report.memory).read(Address(address), bytes.get_mut(..size)?);
        read.then(|| u64::from_le_bytes(bytes))
    };
    let words = match report.code {
        1 => match stopped.map(|stopped| stopped.division(memory)) {
            Some(Division::ByZero) => "it divided an integer by zero",
            Some(Division::TooLarge) => {
                "it divided integers and the quotient is too large for its register \
                 (such as the smallest number by -1)"
            }
            _ => "it divided an integer by zero, or the quotient was too large",
        },
        2 => "integer overflow",
        3 => "it divided a floating-point number by zero, which it asked to trap",
        4 => "a floating-point result was too large, which it asked to trap",
        5 => "a floating-point result was too small, which it asked to trap",
        6 => "a floating-point result was inexact, which it asked to trap",
        7 => "a floating-point operation was invalid, which it asked to trap",
        _ => "arithmetic failed",
    };
    words.into()
}

fn illegal(stopped: Option<&Stopped>) -> String {
    match stopped {
        Some(stopped) if stopped.is_undefined() => {
            "it executed `ud2`, which compilers put where no execution must ever get".into()
        }
        Some(_) => "this processor does not know the instruction".into(),
        None => "it executed bytes that are no instruction".into(),
    }
}

fn trap(report: &CrashReport, stopped: Option<&Stopped>) -> String {
    let breakpoint = stopped.is_some_and(|stopped| stopped.text == "int3");
    if report.trap == 3 || breakpoint {
        "it reached a breakpoint instruction (`int3`)".into()
    } else {
        "it set the processor's trap flag".into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;

    fn words(change: impl FnOnce(&mut CrashReport)) -> String {
        let mut report = report();
        change(&mut report);
        cause(&report, None, &[])
    }

    #[test]
    fn what_is_not_the_programs_access_is_not_called_one() {
        let handler = words(|report| (report.trap, report.code) = (14, KERNEL));
        assert!(handler.starts_with("its signal handler could not be entered"), "{handler}");
        let back = words(|report| (report.trap, report.code) = (0, KERNEL));
        assert!(back.starts_with("it returned from a signal handler to a damaged"), "{back}");
        let sent = words(|report| (report.code, report.sender) = (0, 77));
        assert_eq!(sent, "process 77 sent it");
    }

    #[test]
    fn only_a_fault_beside_the_stack_is_a_full_stack() {
        let stack = Region { start: 0x70_0000, end: 0xf0_0000, protection: 3, file: None };
        let full = |pointer, address| {
            words(|report| {
                (report.general[4], report.address) = (pointer, address);
                report.at_stack = Some(stack.clone());
            })
            .starts_with("its stack of 8 MiB is full")
        };
        assert!(full(0x70_0010, 0x6f_fff8) && full(0x6f_f000, 0x6f_f800));
        assert!(!full(0xe0_0000, 0x6f_fff8), "the stack pointer is far away");
        assert!(!full(0x70_0010, 0x71_0000), "the address is on the stack");
    }

    #[test]
    fn signals_have_names() {
        let names = [1, 11, 31, 34, 0, i32::MIN].map(signal_name);
        assert_eq!(names[..4], ["SIGHUP", "SIGSEGV", "SIGSYS", "signal 34"]);
    }
}
