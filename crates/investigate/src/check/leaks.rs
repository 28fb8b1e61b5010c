//! What a process has left in its heap when it exits: its memory is read where its replay stands still, and
//! blocks are told apart by what still leads to them (`analyze::leaks`).
//!
//! Roots are the registers and all writable memory of the guest that is neither heap nor dead stack. Where it
//! is known which bytes nobody wrote, those hold no pointers, as for memcheck.

use super::choose::Chosen;
use super::findings::{RuleFindings, named};
use super::watch::Located;
use analyze::leaks::{Class, Root, classify};
use analyze::rules::machine::Machine;
use analyze::rules::machine::chains::Stamp;
use analyze::rules::model::Rule;
use analyze::rules::report::frames::{self, frames};
use analyze::rules::shipped;
use base::{Confidence, Finding, ModuleKind, Role, Step};
use recording::log::{self, Entry, MappingData};
use replay::{Session, StoppedProcess};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use symbols::Program;

/// The rule whose findings these are.
const RULE: &str = "definite-leak";
/// The kind of findings about blocks that only pointers into their middle lead to.
pub const POSSIBLE: (&str, &str) =
    ("possible-loss", "blocks are possibly lost: only pointers into their middle are left");
/// How far behind the last page of a library's file its zeroed variables reach.
const BEHIND_FILE: u64 = 1 << 16;
const WORD: u64 = 8;
const PIECE: u64 = 1 << 16;

/// Bytes and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.blocks += 1;
    }

    fn and(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, blocks: self.blocks + other.blocks }
    }
}

/// What was left in the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Leaks {
    /// Nothing leads to these.
    pub definite: Amount,
    /// Only lost blocks lead to these.
    pub indirect: Amount,
    /// Only pointers into the middle lead to these.
    pub possible: Amount,
    /// Pointers lead to these.
    pub reachable: Amount,
}

impl Leaks {
    /// Together with those of another process.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            definite: self.definite.and(other.definite),
            indirect: self.indirect.and(other.indirect),
            possible: self.possible.and(other.possible),
            reachable: self.reachable.and(other.reachable),
        }
    }

    /// Whether anything is lost, or may be.
    pub fn is_any(&self) -> bool {
        self.definite.blocks + self.possible.blocks > 0
    }
}

/// Whether lost blocks are to be listed; and what is checked for that: the list comes from here, and which bytes
/// nobody wrote must be known.
pub fn split(chosen: &Chosen) -> (Chosen, bool) {
    let listed = chosen.rules.iter().any(is_leak);
    if !listed {
        return (chosen.clone(), false);
    }
    let mut rules: Vec<Rule> = chosen.rules.iter().filter(|rule| !is_leak(rule)).cloned().collect();
    rules.extend(shipped::rules().into_iter().filter(|rule| {
        // Nobody asks for its findings unless it was chosen, see `RuleFindings::forget`.
        rule.name == FOLLOWS && chosen.rules.iter().all(|known| known.name != FOLLOWS)
    }));
    (Chosen { rules, ..chosen.clone() }, true)
}

/// A rule that makes a detector follow which bytes nobody wrote, and who calls.
pub(super) const FOLLOWS: &str = "uninitialised-read";

/// Whether a rule is about lost blocks.
pub fn is_leak(rule: &Rule) -> bool {
    rule.name == RULE
}

/// A live block.
struct LiveBlock<'a> {
    range: Range<u64>,
    stack: &'a [u64],
    allocated: Option<Stamp>,
    /// Whether the process was forked with it.
    inherited: bool,
}

/// A process that has just exited.
pub struct Exited<'a> {
    /// What is known of it.
    pub machine: &'a Machine,
    /// Its memory and registers.
    pub standing: &'a StoppedProcess,
    /// Names and lines.
    pub program: &'a Program,
    /// Its number, and those of its threads.
    pub located: &'a Located,
}

/// Blocks of the same class, made by the same calls.
#[derive(Default)]
struct Group {
    own: Amount,
    with_them: Amount,
    allocated: Option<Stamp>,
}

/// Looks at the heap of a process that has exited. What is lost becomes findings if they are `listed`.
pub fn look(
    session: &Session,
    (process, pid): (u32, i32),
    exited: &Exited<'_>,
    (chosen, listed): (&Chosen, bool),
) -> anyhow::Result<RuleFindings> {
    let blocks = live(exited.machine);
    let ranges: Vec<Range<u64>> = blocks.iter().map(|block| block.range.clone()).collect();
    let memory = Memory { standing: exited.standing, machine: exited.machine };
    let roots = roots(&memory, &image(session, process)?);
    let mut contents = |block: usize, tell: &mut dyn FnMut(u64)| memory.words(&ranges[block], tell);
    let classes = classify(&ranges, roots, &mut contents);
    let mut leaks = Leaks::default();
    let mut groups: BTreeMap<(Class, &[u64]), Group> = BTreeMap::new();
    for (block, class) in blocks.iter().zip(&classes).filter(|(block, _)| !block.inherited) {
        let bytes = block.range.end - block.range.start;
        match class {
            Class::Reachable => leaks.reachable.add(bytes),
            Class::Possible => leaks.possible.add(bytes),
            Class::Definite => leaks.definite.add(bytes),
            Class::Indirect(_) => leaks.indirect.add(bytes),
        }
        match class {
            Class::Reachable => {}
            Class::Indirect(leader) => {
                let group = groups.entry((Class::Definite, blocks[*leader].stack)).or_default();
                group.with_them.add(bytes);
            }
            Class::Possible | Class::Definite => {
                let group = groups.entry((*class, block.stack)).or_default();
                group.own.add(bytes);
                group.allocated = group.allocated.or(block.allocated);
            }
        }
    }
    let mut found = RuleFindings { leaks: Some(leaks), ..RuleFindings::default() };
    if listed {
        let mut groups: Vec<_> = groups.into_iter().collect();
        // The most first; what is certain before what is not.
        groups.sort_by_key(|((class, _), group)| {
            (*class != Class::Definite, std::cmp::Reverse(group.own.bytes + group.with_them.bytes))
        });
        for ((class, stack), group) in groups {
            let finding = finding(class, stack, &group, exited);
            let frames = named(stack, exited.program);
            if !found.is_set_aside(RULE, &frames, &chosen.suppressions) {
                found.add_lost(pid, finding, (stack.to_vec(), &frames));
            }
        }
    }
    Ok(found)
}

/// The live blocks by address. One that others lie in belongs to an allocator of the program's own, which
/// hands out pieces of it.
fn live(machine: &Machine) -> Vec<LiveBlock<'_>> {
    let mut blocks: Vec<LiveBlock<'_>> = machine
        .blocks
        .live()
        .filter_map(|id| Some((id, machine.blocks.get(id)?)))
        .filter(|(_, block)| !block.unplaced)
        .map(|(id, block)| LiveBlock {
            range: block.facts.begin..block.end(),
            stack: machine.stack(block.stack),
            allocated: machine.allocated_at(id),
            inherited: id.0 <= machine.inherited,
        })
        .collect();
    blocks.sort_by_key(|block| (block.range.start, std::cmp::Reverse(block.range.end)));
    let starts: Vec<u64> = blocks.iter().map(|block| block.range.start).collect();
    let mut index = 0;
    blocks.retain(|block| {
        index += 1;
        starts.get(index).is_none_or(|next| *next >= block.range.end.max(block.range.start + 1))
    });
    blocks
}

/// What was mapped when the recording of a process, or of the one that it was forked from, began.
fn image(session: &Session, process: u32) -> anyhow::Result<Vec<MappingData>> {
    let first = session.path_to(process).first().copied().unwrap_or(process);
    let mut log = log::entries(session.recording().log(first)?);
    Ok(log
        .find_map(|(entry, _)| match entry {
            Entry::Image(image) => Some(image.mappings),
            _ => None,
        })
        .unwrap_or_default())
}

/// The memory of a process that stands still.
struct Memory<'a> {
    standing: &'a StoppedProcess,
    machine: &'a Machine,
}

impl Memory<'_> {
    /// The aligned words of a range that somebody wrote.
    fn words(&self, range: &Range<u64>, tell: &mut dyn FnMut(u64)) {
        let mut at = range.start.next_multiple_of(WORD);
        while at.saturating_add(WORD) <= range.end {
            let length = (range.end - at).min(PIECE) & !(WORD - 1);
            let mut bytes = vec![0; length as usize];
            let read = self.standing.read(at, &mut bytes);
            for (index, word) in bytes[..read].chunks_exact(WORD as usize).enumerate() {
                let value = u64::from_le_bytes(word.try_into().expect("eight bytes"));
                if value != 0 && self.is_written(at + WORD * index as u64) {
                    tell(value);
                }
            }
            at += length;
        }
    }

    fn is_written(&self, address: u64) -> bool {
        !self.machine.watches_writes || self.machine.unwritten.first(address, WORD).is_none()
    }
}

/// Every word that is no block's: registers, and memory that the program may write.
fn roots(memory: &Memory<'_>, image: &[MappingData]) -> Vec<Root> {
    let at = &memory.standing.at;
    let plain = |word: u64| Root { word, only_beginnings: false };
    let mut roots: Vec<Root> = at.thread.general.iter().copied().map(plain).collect();
    let libraries = c_library(&at.modules);
    for range in pieces(memory, image) {
        let only_beginnings =
            libraries.iter().any(|library| library.start < range.end && range.start < library.end);
        memory.words(&range, &mut |word| roots.push(Root { word, only_beginnings }));
    }
    roots
}

/// Where the C library and its loader have their variables, the heap's own lists among them.
fn c_library(modules: &[base::ModuleMap]) -> Vec<Range<u64>> {
    let own = modules.iter().filter(|map| ModuleKind::of(&map.path).is_c_library());
    own.map(|map| map.start..map.end.saturating_add(BEHIND_FILE)).collect()
}

/// The writable memory of the guest that is no heap.
fn pieces(memory: &Memory<'_>, image: &[MappingData]) -> Vec<Range<u64>> {
    let stack = memory.standing.at.thread.general[STACK_POINTER];
    let machine = memory.machine;
    let holds_blocks = |range: &Range<u64>| {
        let inside = |id| machine.blocks.get(id).is_some_and(|b| range.contains(&b.facts.begin));
        machine.blocks.live().any(inside) || machine.blocks.freed().any(inside)
    };
    let first = image.iter().map(|mapping| mapping.start..mapping.end);
    let guest = first.chain(machine.mapped()).filter(|range| !holds_blocks(range));
    let guest: Vec<Range<u64>> = guest.collect();
    let mut pieces = Vec::new();
    for written in writable(memory.standing.at.process) {
        for range in &guest {
            let mut piece = range.start.max(written.start)..range.end.min(written.end);
            if piece.contains(&stack) {
                piece.start = stack;
            }
            if piece.start < piece.end {
                pieces.push(piece);
            }
        }
    }
    // A program's file may be there twice: as the kernel mapped it, and as its loader did.
    pieces.sort_by_key(|piece| (piece.start, piece.end));
    pieces.dedup();
    pieces
}

/// Number of rsp in the order of the processor.
const STACK_POINTER: usize = 4;

/// What a process may read and write, as the kernel tells.
fn writable(process: i32) -> Vec<Range<u64>> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let range = |line: &str| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        let range = hexadecimal(start)?..hexadecimal(end)?;
        words.next()?.starts_with("rw").then_some(range)
    };
    maps.lines().filter_map(range).collect()
}

/// What is lost, as a finding.
fn finding(class: Class, stack: &[u64], group: &Group, exited: &Exited<'_>) -> Finding {
    let blocks = |amount: Amount| {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let Amount { bytes, blocks } = amount;
        format!("{bytes} byte{} in {blocks} block{}", plural(bytes), plural(blocks))
    };
    let (kind, how) = match class {
        Class::Possible => (POSSIBLE.0, "possibly lost: only pointers into their middle are left"),
        _ => (RULE, "definitely lost"),
    };
    let calls = frames(stack, exited.program);
    let mut evidence = Vec::new();
    if group.with_them.blocks > 0 {
        evidence.push(Step::new(format!("{} more are lost with them", blocks(group.with_them))));
    }
    let mut steps = frames::steps("allocated: ", Role::Allocated, &calls, exited.program);
    if let Some(first) = steps.first_mut() {
        first.when = group.allocated.and_then(|stamp| exited.located.when(stamp));
    }
    evidence.extend(steps);
    Finding {
        kind: kind.into(),
        title: format!("{} are {how}", blocks(group.own)),
        confidence: Confidence::Certain,
        place: frames::own_place(&calls),
        when: None,
        evidence,
    }
    .at_time(None)
}
