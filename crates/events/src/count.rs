//! Counts what a guest executes: instructions, blocks, branches, loads, stores, system calls, in
//! all and by thread. It never expands records: every exit stands for known sums.

use crate::consume::Consumer;
use crate::decode::{self, Decoder, ExplicitAccess, Malformed, Path, Record};
use crate::record;
use crate::shape::{Access, KIND_BRANCH, KIND_CALL, KIND_RETURN, Shape, Source};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sums of one thread or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Instructions executed; a repeated string instruction is one.
    pub instructions: u64,
    /// Superblocks entered.
    pub blocks: u64,
    /// Conditional branches.
    pub branches: u64,
    /// Conditional branches that were taken.
    pub taken: u64,
    /// Calls.
    pub calls: u64,
    /// Returns.
    pub returns: u64,
    /// Reads of memory.
    pub loads: u64,
    /// Writes of memory.
    pub stores: u64,
    /// System calls.
    pub syscalls: u64,
}

impl Counts {
    /// Adds another sum to this one.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.blocks += other.blocks;
        self.branches += other.branches;
        self.taken += other.taken;
        self.calls += other.calls;
        self.returns += other.returns;
        self.loads += other.loads;
        self.stores += other.stores;
        self.syscalls += other.syscalls;
    }
}

/// Counts the events of one process.
#[derive(Default)]
pub struct Counter {
    decoder: Decoder,
    thread: u32,
    sums: Sums,
    explicit: Vec<ExplicitAccess>,
    /// Sums by thread.
    pub threads: BTreeMap<u32, Counts>,
    /// Whether the stream was broken somewhere.
    pub broken: bool,
    /// Bytes of the stream.
    pub bytes: u64,
}

/// What superblocks amount to.
#[derive(Default)]
struct Sums {
    /// For each shape, where its sums start, and whether there is more to count in its records.
    shapes: Vec<(u32, bool)>,
    /// The sums of the first N instructions, for each N, shape after shape.
    prefixes: Vec<Counts>,
}

impl Sums {
    /// What the executed part of a superblock amounts to, and whether there is more to count.
    fn of(&mut self, path: &Path<'_, '_>) -> (&Counts, bool) {
        let number = path.number as usize;
        if self.shapes.get(number).is_none_or(|(start, _)| *start == UNKNOWN) {
            let more =
                |access: &Access| matches!(access.source, Source::Explicit | Source::Repeat { .. });
            let there = self.shapes.len().max(number + 1);
            self.shapes.resize(there, (UNKNOWN, false));
            let more = path.shape.accesses.iter().any(more);
            self.shapes[number] = (self.prefixes.len() as u32, more);
            self.prefixes.extend(prefix_sums(path.shape));
        }
        let (start, more) = self.shapes[number];
        (&self.prefixes[start as usize + usize::from(path.executed)], more)
    }
}

/// Stands for the start of sums that have not been made.
const UNKNOWN: u32 = u32::MAX;

impl Counter {
    /// The sums of all threads.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.threads.values().for_each(|counts| total.add(counts));
        total
    }

    fn count(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let (threads, thread, sums) = (&mut self.threads, &mut self.thread, &mut self.sums);
        let mut current = threads.remove(thread).unwrap_or_default();
        let explicit = &mut self.explicit;
        let mut broken = false;
        let done = self.decoder.records(bytes, |record| match record {
            Record::Thread(number, _) => {
                threads.insert(*thread, current);
                *thread = number;
                current = threads.remove(thread).unwrap_or_default();
            }
            Record::Syscall(..) => current.syscalls += 1,
            Record::Buffers(_) | Record::Single(_) | Record::Probe(..) => {}
            Record::Accesses(list) => broken |= decode::read_accesses(list, explicit).is_none(),
            Record::Cut(_, made) => {
                explicit.truncate(made as usize);
                count_explicit(explicit, &mut current);
            }
            Record::Path(path) => {
                let (sum, more) = sums.of(&path);
                current.add(sum);
                current.blocks += 1;
                current.taken += u64::from(path.taken);
                if more {
                    let is_explicit = |access: &Access| access.source == Source::Explicit;
                    if path.executed > 0 && path.shape.accesses.first().is_some_and(is_explicit) {
                        count_explicit(explicit, &mut current);
                    }
                    repeated(&path, &mut current);
                }
            }
        });
        threads.insert(*thread, current);
        if broken { Err(Malformed) } else { done }
    }
}

fn count_explicit(accesses: &mut Vec<ExplicitAccess>, counts: &mut Counts) {
    for (write, ..) in accesses.drain(..) {
        counts.stores += u64::from(write);
        counts.loads += u64::from(!write);
    }
}

/// What the first N instructions of a superblock amount to, for each N. Repeated string
/// instructions are counted by record.
fn prefix_sums(shape: &Shape) -> Vec<Counts> {
    let mut sums = vec![Counts::default()];
    let mut sum = Counts::default();
    for (index, instruction) in shape.instructions.iter().enumerate() {
        sum.instructions += 1;
        sum.branches += u64::from(instruction.kind == KIND_BRANCH);
        sum.calls += u64::from(instruction.kind == KIND_CALL);
        sum.returns += u64::from(instruction.kind == KIND_RETURN);
        for access in shape.accesses.iter().filter(|access| usize::from(access.index) == index) {
            if matches!(access.source, Source::Constant(_) | Source::Field { .. }) {
                sum.loads += u64::from(!access.write);
                sum.stores += u64::from(access.write);
            }
        }
        sums.push(sum);
    }
    sums
}

/// Adds the accesses of repeated string instructions.
fn repeated(path: &Path<'_, '_>, counts: &mut Counts) {
    for access in path.shape.accesses.iter().filter(|access| access.index < path.begun()) {
        let Source::Repeat { field } = access.source else { continue };
        let get = |index: usize| record::field(path.payload, field as usize + index);
        let (Some(before), Some(after)) = (get(0), get(3)) else { continue };
        let steps = decode::repetitions(access.narrow, before, after);
        counts.loads += if access.write { 0 } else { steps };
        counts.stores += if access.write { steps } else { 0 };
    }
}

impl Consumer for Counter {
    fn records(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.broken |= self.count(bytes).is_err();
    }
}
