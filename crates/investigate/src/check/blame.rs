//! Which finding a crash came from, so that both are told as one: the access that faulted itself, a store that
//! put the bad pointer where it was read from, damage to the heap or the stack that the C library noticed.

use super::findings::{Facts, RuleFindings, line};
use crate::crash::{Crash, Identity};
use base::{CrashReport, Tick};

/// How far a pointer may be from what it was read as: a member of a structure, an element of a small array.
const NEAR: u64 = 4096;

/// How surely a crash comes from a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Link {
    /// The finding damages what the crash is about.
    Damage,
    /// The bad pointer stands where the finding wrote.
    Overwritten,
    /// The finding is the access that faulted.
    Same,
}

impl RuleFindings {
    /// Explains crashes, and for each which of the findings it came from: its number among
    /// [`RuleFindings::findings`]. What a crash came from is told first.
    pub fn blame(&mut self, reports: &[CrashReport]) -> (Vec<Crash>, Vec<Option<usize>>) {
        let mut crashes = Vec::new();
        let mut causes = Vec::new();
        for report in reports {
            let crash = Crash::of_known(report, self.identity(report));
            causes.push(self.cause(report, &crash));
            crashes.push(crash);
        }
        for index in causes.iter().flatten() {
            self.told[*index].fatal = true;
        }
        let mut order: Vec<usize> = (0..self.told.len()).collect();
        order.sort_by_key(|index| self.rank(*index));
        let position = |index: usize| order.iter().position(|told| *told == index);
        let causes = causes.into_iter().map(|cause| cause.and_then(position)).collect();
        (crashes, causes)
    }

    /// The numbers of the process and the thread of a crash.
    fn identity(&self, report: &CrashReport) -> Identity {
        let Some(located) = self.located.get(&report.process) else { return Identity::default() };
        let thread = located.thread(report.thread, Tick(u64::MAX));
        Identity { process: Some(located.process()), thread }
    }

    /// The first of those that the crash comes from most surely.
    fn cause(&self, report: &CrashReport, crash: &Crash) -> Option<usize> {
        let own = |told: &super::findings::Reported| told.processes.contains(&report.process);
        let all = self.told.iter().enumerate().filter(|(_, told)| own(told));
        let place = crash.finding.place.as_ref().map(line);
        let linked = all.filter_map(|(index, told)| {
            // What the C library was told to do is judged at its call, and faults inside.
            let same_line = told.finding.place.as_ref().map(line) == place;
            let there = same_line && touches(&told.facts, report);
            let link = if there { Some(Link::Same) } else { link(&told.facts, report, crash) };
            Some((link?, std::cmp::Reverse(index)))
        });
        linked.max().map(|(_, index)| index.0)
    }
}

/// Whether a finding accesses the address that faulted.
fn touches(facts: &Facts, report: &CrashReport) -> bool {
    const PAGE_FAULT: u64 = 14;
    let there = |(begin, end): (u64, u64)| (begin..end).contains(&report.address);
    report.trap == PAGE_FAULT && facts.touched.is_some_and(there)
}

fn link(facts: &Facts, report: &CrashReport, crash: &Crash) -> Option<Link> {
    if facts.instructions.contains(&report.pc) {
        return Some(Link::Same);
    }
    if is_overwritten(facts, report, crash) {
        return Some(Link::Overwritten);
    }
    let calls = crash.calls_to_own();
    let calls_any = |known: &[&str]| {
        let bare =
            |name: &str| name.trim_start_matches("__GI_").trim_start_matches("__libc_").to_owned();
        calls
            .iter()
            .filter_map(|(name, _)| name.as_deref())
            .any(|name| known.contains(&&*bare(name)))
    };
    let damaged_heap = facts.heap && calls_any(&ALLOCATOR);
    let damaged_stack = facts.stack && (calls_any(&["__stack_chk_fail"]) || is_lost(report));
    (damaged_heap || damaged_stack).then_some(Link::Damage)
}

/// Functions of the C library that go through the heap's own lists.
const ALLOCATOR: [&str; 12] = [
    "malloc",
    "free",
    "cfree",
    "calloc",
    "realloc",
    "memalign",
    "_int_malloc",
    "_int_free",
    "malloc_consolidate",
    "unlink_chunk",
    "malloc_printerr",
    "sysmalloc",
];

/// Whether the program went where no code is.
fn is_lost(report: &CrashReport) -> bool {
    let code = |map: &base::ModuleMap| (map.start..map.end).contains(&report.pc);
    !report.modules.iter().any(code)
}

/// Whether a register of the instruction was read from memory that the finding wrote.
fn is_overwritten(facts: &Facts, report: &CrashReport, crash: &Crash) -> bool {
    let Some((begin, end)) = facts.written else { return false };
    let used = crash.used_registers();
    let bad = |value: u64| value >= NEAR && used.iter().any(|used| used.abs_diff(value) <= NEAR);
    report.memory.iter().any(|chunk| {
        let words = (0..chunk.bytes.len().saturating_sub(7)).filter(|at| {
            let address = chunk.start.wrapping_add(*at as u64);
            address.is_multiple_of(8) && address < end && address.saturating_add(8) > begin
        });
        words
            .filter_map(|at| chunk.bytes.get(at..at + 8)?.try_into().ok())
            .map(u64::from_le_bytes)
            .any(bad)
    })
}
