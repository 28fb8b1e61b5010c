//! Both sides of a program, step by step; the first difference is told with its neighbourhood.

use super::engine_log::{self, Access, Entry, Log, TOOL};
use super::reference;
use anyhow::{bail, ensure};
use events::shape::{KIND_BRANCH, KIND_CALL, KIND_JUMP, KIND_PLAIN, KIND_RETURN, KIND_SYSCALL};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;
use testkit::singlestep::{AccessKind, Ending, Flow, Session, Step};

/// How many instructions before a difference are shown.
const SHOWN: usize = 6;

/// Compares a program's events and counts; how many instructions agree.
pub fn check(program: &Path, superblock: usize) -> anyhow::Result<usize> {
    let log = Log::of(program, superblock, None)?;
    let mut session = reference::launch(program, &log.calls)?;
    let mut recent: VecDeque<(u64, [u8; 15])> = VecDeque::new();
    let mut entries = log.entries.iter();
    let mut position = 0;
    while let Some(step) = session.next_step()? {
        if !step.completed && step.accesses.is_empty() {
            continue;
        }
        let entry = entries.next();
        if let Some(what) = difference(&log, entry, step) {
            let before: String = recent.iter().map(|(pc, bytes)| line(*pc, bytes)).collect();
            let native = native_side(step);
            let theirs = entry.map_or(String::new(), |entry| engine_side(&log, entry, &session));
            bail!(
                "step {position}: {what}\n{before}natively\n{native}under the engine\n{theirs}{}",
                reproduce(program, superblock)
            );
        }
        if recent.len() == SHOWN {
            recent.pop_front();
        }
        recent.push_back((step.pc, step.bytes));
        position += 1;
    }
    if let Some(entry) = entries.next() {
        let code = engine_side(&log, entry, &session);
        let before: String = recent.iter().map(|(pc, bytes)| line(*pc, bytes)).collect();
        bail!(
            "step {position}: natively the program has ended ({:?})\n{before}\
             the engine goes on with\n{code}{}",
            session.ending(),
            reproduce(program, superblock)
        );
    }
    let ending = match session.ending() {
        Some(Ending::Exit(code)) => code,
        Some(Ending::Signal(signal)) => 128 + signal,
        None => bail!("natively the program has not ended"),
    };
    ensure!(ending == log.ending, "ends with {ending} natively, {} under the engine", log.ending);
    compare_counts(program, superblock, &session)?;
    Ok(position)
}

/// What differs, if anything does.
pub fn difference(log: &Log, entry: Option<&Entry>, step: &Step) -> Option<String> {
    let Some(entry) = entry else { return Some("the engine's events have ended".into()) };
    if entry.pc != step.pc {
        return Some("another instruction".into());
    }
    if entry.completed != step.completed {
        return Some("one side was interrupted".into());
    }
    let accesses: Vec<Access> = native_accesses(step);
    if accesses != log.accesses(entry) {
        return Some("other accesses".into());
    }
    if !step.completed {
        return None;
    }
    let (kind, taken) = native_kind(step);
    if (kind, taken) != (entry.kind, entry.taken) {
        return Some("another kind of instruction, or the other side of a branch".into());
    }
    call_difference(log, entry, step)
}

fn call_difference(log: &Log, entry: &Entry, step: &Step) -> Option<String> {
    let theirs = log.call(entry).copied();
    let Flow::System(call) = step.flow else {
        return theirs.map(|_| "a system call that was not made".into());
    };
    let Some((number, arguments, answer)) = theirs else {
        return Some("a system call is missing".into());
    };
    let count = reference::argument_count(call.number);
    if (number, &arguments[..count]) != (call.number, &call.arguments[..count]) {
        return Some("another system call, or other arguments".into());
    }
    let comparable = reference::has_repeatable_answer(number);
    match call.result {
        Some(result) if comparable && result != answer => Some(format!(
            "system call {number} answers {result:#x} natively, {answer:#x} under the engine"
        )),
        _ => None,
    }
}

fn native_accesses(step: &Step) -> Vec<Access> {
    let tuple = |access: &testkit::singlestep::Access| {
        (access.address, access.size, access.kind == AccessKind::Write)
    };
    step.accesses.iter().map(tuple).collect()
}

fn native_kind(step: &Step) -> (u8, bool) {
    match step.flow {
        Flow::Next => (KIND_PLAIN, false),
        Flow::Branch { taken, .. } => (KIND_BRANCH, taken),
        Flow::Jump { .. } => (KIND_JUMP, false),
        Flow::Call { .. } => (KIND_CALL, false),
        Flow::Return { .. } => (KIND_RETURN, false),
        Flow::System(_) => (KIND_SYSCALL, false),
    }
}

fn compare_counts(program: &Path, superblock: usize, session: &Session) -> anyhow::Result<()> {
    let native = session.counts();
    let theirs = engine_log::counts(program, superblock)?;
    let rows = [
        ("instructions", native.instructions, theirs.instructions),
        ("branches", native.branches, theirs.branches),
        ("taken", native.taken, theirs.taken),
        ("calls", native.calls, theirs.calls),
        ("returns", native.returns, theirs.returns),
        ("loads", native.loads, theirs.loads),
        ("stores", native.stores, theirs.stores),
        ("system calls", native.syscalls, theirs.syscalls),
    ];
    match rows.iter().find(|(_, native, theirs)| native != theirs) {
        None => Ok(()),
        Some((name, native, theirs)) => bail!(
            "the events agree, but `count` says {theirs} {name}, natively there are {native}\n\
             {TOOL} count --superblock {superblock} -- {}",
            program.display()
        ),
    }
}

pub fn native_side(step: &Step) -> String {
    let mut text = line(step.pc, &step.bytes);
    let _ = writeln!(text, "    {:?}, completed: {}", step.flow, step.completed);
    native_accesses(step).iter().for_each(|access| show(access, &mut text));
    text
}

pub fn engine_side(log: &Log, entry: &Entry, session: &Session) -> String {
    let mut text = line(entry.pc, &session.memory(entry.pc, 15));
    let Entry { kind, taken, completed, .. } = entry;
    let _ = writeln!(text, "    kind {kind}, taken: {taken}, completed: {completed}");
    if let Some(call) = log.call(entry) {
        let _ = writeln!(text, "    {call:x?}");
    }
    log.accesses(entry).iter().for_each(|access| show(access, &mut text));
    text
}

fn show((address, size, write): &Access, text: &mut String) {
    let what = if *write { "writes" } else { "reads" };
    let _ = writeln!(text, "    {what} {size} bytes at {address:#x}");
}

fn line(pc: u64, bytes: &[u8]) -> String {
    let instruction = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
    let mut text = String::new();
    IntelFormatter::new().format(&instruction, &mut text);
    format!("  {pc:#x}  {text}\n")
}

fn reproduce(program: &Path, superblock: usize) -> String {
    let words = engine_log::arguments(program, superblock, Path::new("events"));
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    format!("{TOOL} {}\n{TOOL} native -- {}", words.join(" "), program.display())
}
