//! The rules that a program broke before it crashed. A use after free shows as a wild pointer, an overflow as a
//! damaged heap, much later: the statement that broke a rule is the better answer, and its rule the better name.

use crate::case::Case;
use crate::check::{Choice, beginning};
use crate::ending::Class;
use crate::slicing::Execution;
use analyze::semantics::Parts;
use analyze::slice::Wants;
use analyze::slice::ending::Asked;
use base::{CrashReport, Finding, Position, Role, Step};
use symbols::plain_name;

/// Runs that are longer are not followed by rules here; `whydunit check` does that.
const FOLLOWED: u64 = beginning::TICKS;
/// Findings that are told.
const MOST: usize = 2;
/// Copies of pointers that are told in short.
const COPIES: usize = 4;

/// What the default rules find in a process up to its crash, in the order of the run. Nothing if the run is too
/// long; and whatever goes wrong in checking them, the diagnosis does without.
pub fn rules(case: &Case, process: u32, crash: Option<&CrashReport>, ticks: u64) -> Vec<Finding> {
    if ticks > FOLLOWED {
        return Vec::new();
    }
    let processes = case.recording().processes();
    let Some(start) = processes.iter().find(|start| start.process == process) else {
        return Vec::new();
    };
    let Ok(chosen) = Choice::default().read() else { return Vec::new() };
    // The runner that replays has another number.
    let crash = crash.map(|crash| CrashReport { process: process as i32, ..crash.clone() });
    let followed = beginning::follow(
        case.session(),
        start,
        crash.as_ref(),
        (&chosen, ticks + 1),
        case.notices(),
    );
    let Ok(followed) = followed else { return Vec::new() };
    let found = followed.found.findings().into_iter();
    found.filter(|finding| class(&finding.kind).is_some()).take(MOST).collect()
}

/// What to ask about an access that was out of bounds: how far it went, and why it was made. Nothing about
/// other rules: there the pointer is to blame, and its way is a part of the finding.
pub fn asked(execution: &Execution, finding: &Finding) -> Vec<Asked> {
    let when = finding.when.filter(|_| class(&finding.kind) == Some(Class::OutOfBounds));
    let Some(Position { tick, pc }) = when.map(|when| when.position) else { return Vec::new() };
    let trace = &execution.trace;
    let Some((executed, _)) = trace.at_tick(tick, Some(pc), None) else { return Vec::new() };
    let count = execution.program.symbol_at(pc).and_then(|(name, _)| counted(plain_name(&name)));
    let (parts, words) = match count {
        Some(register) => (Parts::general(register, 0, 8), "the number of bytes"),
        None => {
            let known = &trace.blocks.statics[executed.instruction as usize];
            (known.meaning.addresses(), "the address outside of it")
        }
    };
    let (thread, moment, pc) = (executed.thread, executed.moment, Some(pc.0));
    let ask = |wants, words: &str| Asked { thread, moment, wants, words: words.into(), pc };
    let why = Wants { control: pc, ..Wants::default() };
    vec![ask(Wants { parts, ..Wants::default() }, words), ask(why, "the access")]
}

/// The register in which a function of the C library is told how many bytes it may touch, if it is.
fn counted(function: &str) -> Option<u8> {
    const ARGUMENTS: [u8; 6] = [7, 6, 2, 1, 8, 9];
    // Versions for one processor or another: `memcpy_avx_unaligned_erms`, `memmove_sse2`.
    let known = |name| contracts::named(name);
    let plain = function.split('_').next().unwrap_or(function);
    let contract = known(function).or_else(|| known(plain))?;
    contract.counts().next().map(|argument| ARGUMENTS[usize::from(argument)])
}

/// What is told of a broken rule in short: who made the block, who freed it, and how the pointers to it were
/// handed on, as far as the program's own code did it.
pub fn in_short(finding: &Finding) -> Vec<&Step> {
    let own = finding.evidence.iter().filter(|step| {
        let file = step.place.as_ref().and_then(|place| place.file.as_deref());
        step.role != Some(Role::Call) && file.is_some_and(base::is_own_source)
    });
    let (mut told, mut copies) = (Vec::<&Step>::new(), 0);
    for step in own {
        let is_copy = step.role == Some(Role::Copied);
        // Of a stack the innermost call is enough.
        let known = told.iter().any(|other| other.role == step.role && step.role.is_some());
        copies += usize::from(is_copy);
        if if is_copy { copies <= COPIES } else { !known } {
            told.push(step);
        }
    }
    told
}

/// The class of a rule; nothing of those that say no more than the crash does.
pub fn class(rule: &str) -> Option<Class> {
    let rule = rule.replace('_', "-");
    Some(match rule.as_str() {
        "dangling-pointer" | "use-after-return" | "use-after-scope" | "use-after-free" => {
            Class::UseAfterFree
        }
        "double-free" => Class::DoubleFree,
        "unmatched-free" | "mismatched-free" => Class::InvalidFree,
        "heap-overflow" | "stack-overflow" | "global-overflow" | "out-of-bounds"
        | "stack-underflow" | "variable-overflow" | "overlapping-copy" => Class::OutOfBounds,
        "uninitialised-read" | "unwritten-value" | "uninitialised" => Class::Uninitialised,
        _ => return None,
    })
}
