//! Counts what a guest executes: instructions, blocks, branches, loads, stores, system calls, in
//! all and by thread. It never expands records: every exit stands for known sums.

use crate::consume::Consumer;
use crate::decode::{self, Decoder, Event, ExplicitAccess, Malformed, Path, Record};
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
        self.add_times(other, 1);
    }

    fn add_times(&mut self, other: &Self, times: u64) {
        self.instructions += other.instructions * times;
        self.blocks += other.blocks * times;
        self.branches += other.branches * times;
        self.taken += other.taken * times;
        self.calls += other.calls * times;
        self.returns += other.returns * times;
        self.loads += other.loads * times;
        self.stores += other.stores * times;
        self.syscalls += other.syscalls * times;
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

/// What superblocks amount to, and how often each was executed how far.
#[derive(Default)]
struct Sums {
    /// For each shape, where its sums start, and whether there is more to count in its records.
    shapes: Vec<(u32, bool)>,
    /// The sums of the first N instructions, for each N, shape after shape.
    prefixes: Vec<Counts>,
    /// How often just these were executed, since they were last added up.
    hits: Vec<u32>,
    /// Which of them were.
    touched: Vec<u32>,
}

impl Sums {
    /// The executed part of a superblock counts once more. Whether there is more to count.
    #[inline]
    fn hit(&mut self, path: &Path<'_, '_>) -> bool {
        let number = path.number as usize;
        if self.shapes.get(number).is_none_or(|(start, _)| *start == UNKNOWN) {
            self.learn(path);
        }
        let (start, more) = self.shapes[number];
        let place = start + u32::from(path.executed);
        let hits = &mut self.hits[place as usize];
        if *hits == 0 {
            self.touched.push(place);
        }
        *hits += 1;
        more
    }

    #[cold]
    fn learn(&mut self, path: &Path<'_, '_>) {
        let more =
            |access: &Access| matches!(access.source, Source::Explicit | Source::Repeat { .. });
        let number = path.number as usize;
        self.shapes.resize(self.shapes.len().max(number + 1), (UNKNOWN, false));
        let more = path.shape.accesses.iter().any(more);
        self.shapes[number] = (self.prefixes.len() as u32, more);
        self.prefixes.extend(prefix_sums(path.shape));
        self.hits.resize(self.prefixes.len(), 0);
    }

    /// Adds up what was executed since the last time.
    fn settle(&mut self, counts: &mut Counts) {
        for place in self.touched.drain(..) {
            let hits = u64::from(std::mem::take(&mut self.hits[place as usize]));
            counts.add_times(&self.prefixes[place as usize], hits);
            counts.blocks += hits;
        }
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
        let current = self.threads.remove(&self.thread).unwrap_or_default();
        let mut counting = Counting {
            current,
            thread: &mut self.thread,
            threads: &mut self.threads,
            sums: &mut self.sums,
            explicit: &mut self.explicit,
            broken: false,
        };
        let done = self.decoder.paths(
            bytes,
            &mut counting,
            |it, path| it.path(&path),
            |it, record| {
                it.other(record);
            },
        );
        counting.settle();
        if counting.broken { Err(Malformed) } else { done }
    }
}

/// Counting under way.
struct Counting<'a> {
    current: Counts,
    thread: &'a mut u32,
    threads: &'a mut BTreeMap<u32, Counts>,
    sums: &'a mut Sums,
    explicit: &'a mut Vec<ExplicitAccess>,
    broken: bool,
}

impl Counting<'_> {
    fn settle(&mut self) {
        self.sums.settle(&mut self.current);
        self.threads.insert(*self.thread, self.current);
    }

    #[inline]
    fn path(&mut self, path: &Path<'_, '_>) {
        self.current.taken += u64::from(path.taken);
        if self.sums.hit(path) {
            self.more(path);
        }
    }

    /// What only the record itself tells.
    fn more(&mut self, path: &Path<'_, '_>) {
        let is_explicit = |access: &Access| access.source == Source::Explicit;
        if path.executed > 0 && path.shape.accesses.first().is_some_and(is_explicit) {
            count_explicit(self.explicit, &mut self.current);
        }
        repeated(path, &mut self.current);
    }

    fn other(&mut self, record: Record<'_, '_>) {
        match record {
            Record::Thread(number, _) => {
                self.settle();
                *self.thread = number;
                self.current = self.threads.remove(&number).unwrap_or_default();
            }
            Record::Syscall(..) => self.current.syscalls += 1,
            // What came before was the parent's.
            Record::Single(Event::Fork(None)) => {
                self.settle();
                self.threads.clear();
                self.current = Counts::default();
            }
            Record::Buffers(_) | Record::Single(_) | Record::Probe(..) => {}
            Record::Accesses(list) => {
                self.broken |= decode::read_accesses(list, self.explicit).is_none();
            }
            Record::Cut(_, made) => {
                self.explicit.truncate(made as usize);
                count_explicit(self.explicit, &mut self.current);
            }
            Record::Path(path) => self.path(&path),
        }
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
