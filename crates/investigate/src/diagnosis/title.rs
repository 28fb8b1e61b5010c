//! What kind of end it was, and the sentence that says so.

use crate::case::Case;
use crate::crash::{self, Crash};
use crate::ending::Class;
use crate::ending::words::Said;
use crate::slicing::Execution;
use base::{CrashReport, Ending};

/// Addresses below this are a null pointer, or a member or element of one.
const NEAR_ZERO: u64 = 1 << 16;
/// Bits of a page fault's error code.
const FETCH: u64 = 1 << 4;

/// The class of an end that was the program's own doing.
pub fn class(execution: &Execution, said: Option<&Said>, full_stack: bool) -> Class {
    if full_stack {
        return Class::StackOverflow;
    }
    let told = said.and_then(|said| said.class);
    let Some(report) = execution.crash() else {
        return match execution.outcome.as_ref().map(|outcome| outcome.ending) {
            Some(Ending::Exit(0)) => Class::Success,
            Some(Ending::Exit(_)) => told.unwrap_or(Class::ExitCode),
            Some(Ending::Signal(_)) => Class::RaisedSignal,
            None => Class::Cut,
        };
    };
    if report.code > 0 {
        return of_fault(report);
    }
    let calls = Crash::of(report).calls_to_own();
    let names: Vec<&str> = calls.iter().filter_map(|(name, _)| name.as_deref()).collect();
    aborted(&names, told)
}

fn of_fault(report: &CrashReport) -> Class {
    match crash::signal_name(report.signal).as_str() {
        "SIGFPE" => Class::Division,
        "SIGILL" | "SIGTRAP" | "SIGSYS" => Class::IllegalInstruction,
        "SIGSEGV" if report.error & FETCH != 0 && report.trap == 14 => Class::WildJump,
        "SIGSEGV" if report.trap == 14 && report.address < NEAR_ZERO => Class::NullPointer,
        _ => Class::WildPointer,
    }
}

/// By the functions that led to abort; the one furthest out says most.
fn aborted(names: &[&str], told: Option<Class>) -> Class {
    const KNOWN: [(&str, Class); 17] = [
        ("__assert_fail", Class::Assertion),
        ("__stack_chk_fail", Class::BufferOverflow),
        ("__fortify_fail", Class::BufferOverflow),
        ("__chk_fail", Class::BufferOverflow),
        ("std::terminate", Class::UncaughtException),
        ("__cxa_throw", Class::UncaughtException),
        ("rust_begin_unwind", Class::RustPanic),
        ("rust_panic", Class::RustPanic),
        ("core::panicking", Class::RustPanic),
        ("handle_alloc_error", Class::OutOfMemory),
        ("malloc_printerr", Class::HeapCorruption),
        ("free", Class::HeapCorruption),
        ("malloc", Class::HeapCorruption),
        ("realloc", Class::HeapCorruption),
        ("calloc", Class::HeapCorruption),
        ("memalign", Class::HeapCorruption),
        ("stack_overflow", Class::StackOverflow),
    ];
    let known = |name: &&str| {
        let bare = name.strip_prefix("__GI_").unwrap_or(name);
        let heap = bare.trim_start_matches("__libc_").trim_start_matches('_');
        let found = KNOWN.iter().find(|(known, class)| match class {
            Class::HeapCorruption => heap == *known,
            _ => bare.contains(known),
        });
        found.map(|(_, class)| *class)
    };
    let found = names.iter().rev().find_map(known);
    let raised = names.iter().any(|name| name.contains("abort"));
    match found.or(told) {
        Some(class) => class,
        None if raised => Class::Abort,
        None => Class::RaisedSignal,
    }
}

/// What is asked about, where the program decided to end.
pub fn decision(class: Class) -> &'static str {
    match class {
        Class::ExitCode => "the decision to exit",
        Class::RustPanic | Class::GoPanic => "the decision to panic",
        Class::UncaughtException => "the decision to throw",
        Class::Assertion => "what the assertion looked at",
        _ => "what decided that it gives up",
    }
}

/// The sentence that says how it ended.
pub fn title(
    case: &Case,
    execution: &Execution,
    class: Class,
    said: Option<&Said>,
    thread: Option<u32>,
) -> String {
    let program = program(case, execution);
    let message = said.map(|said| said.message.as_str());
    let first = |message: &str| message.lines().next().unwrap_or_default().to_owned();
    let by = match thread.map(|thread| execution.thread(thread, execution.trace.tick()).0) {
        Some(number) if number > 1 => format!(" in thread {number}"),
        _ => String::new(),
    };
    let crash = execution.crash().map(|report| Crash::of(report).finding.title);
    match (class, message, crash) {
        (Class::RustPanic | Class::GoPanic, Some(message), _) => {
            format!("{program} panicked{by}: {}", first(message))
        }
        (Class::UncaughtException, Some(message), _) => {
            format!("{program} threw an exception that nobody caught{by}: {}", first(message))
        }
        (
            Class::Assertion | Class::HeapCorruption | Class::BufferOverflow,
            Some(message),
            Some(title),
        ) => {
            format!("{title}: {}", first(message))
        }
        (_, _, Some(title)) => title,
        (Class::RaisedSignal, _, None) => {
            match execution.outcome.as_ref().map(|outcome| outcome.ending) {
                Some(Ending::Signal(signal)) => {
                    let signal = crash::signal_name(signal);
                    format!("{program} was ended by {signal}: the program sent it to itself")
                }
                _ => execution.ending(),
            }
        }
        (_, _, None) => execution.ending().replacen("the program", &program, 1),
    }
}

/// What the program of a process is called.
pub fn program(case: &Case, execution: &Execution) -> String {
    let number = execution.process.unwrap_or(0);
    let starts = case.recording().processes();
    let command = starts
        .iter()
        .rfind(|start| start.process <= number && !start.command.is_empty())
        .map_or_else(|| case.recording().meta().command.first(), |start| start.command.first());
    let name = command.map(ToString::to_string).unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    if name.is_empty() { "the program".into() } else { name }
}
