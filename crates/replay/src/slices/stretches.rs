//! Finds where the kept stretches of a run begin and end, and which memory is written in between.
//!
//! A **stretch** is a run of instructions of one statement that one thread executes without a break,
//! from the first that is kept to the last. Instructions of the same statement between two kept ones
//! are part of it: executing them is exact and cheaper than to make up for them. What the kernel or
//! the processor answers cannot be executed again, so such instructions are never part of one.

use super::Kept;
use engine::control::Instant;
use events::decode::{Bases, Decoder, Event, ExplicitAccess, Path, Record, expand, read_accesses};
use events::{Consumer, shape};
use iced_x86::{Decoder as Disassembler, DecoderOptions, FlowControl, Mnemonic};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex};
use syscalls::number as n;

/// Memory is followed in lines of this many bytes.
pub const LINE: u64 = 64;
/// A range that is longer is kept as a range.
const LONG: u64 = 1 << 16;

/// What happened between two stretches.
#[derive(Debug, Default)]
pub struct Gap {
    /// Instructions of all threads.
    pub instructions: u64,
    /// Lines of memory that were written: address divided by [`LINE`].
    pub lines: Vec<u64>,
    /// Longer ranges that were written.
    pub ranges: Vec<(u64, u64)>,
    /// Memory that was mapped: start, end, protection, and whether it has contents at once.
    pub mapped: Vec<(u64, u64, i32, bool)>,
    /// Where signal handlers were entered: their frames are on the stack then.
    pub handlers: Vec<Instant>,
}

/// A stretch.
#[derive(Debug)]
pub struct Stretch {
    /// Its thread.
    pub thread: u32,
    /// Its first instruction.
    pub start: Instant,
    /// The instruction after its last. Without an address if that was an indirect jump, call or
    /// return: those are ticks, so the time alone says where it ends.
    pub end: Instant,
    /// Where its thread was seen next after such an end: where it had jumped to, or in the handler
    /// of a signal that came at that very moment.
    pub arrival: Option<Instant>,
    /// How many it has.
    pub instructions: u64,
    /// What came before it, from the end of the stretch before.
    pub before: Gap,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The stretches, in order.
    pub stretches: Vec<Stretch>,
    /// What came after the last one.
    pub after: Gap,
    /// Where the slice ends; the end of the recording if there is none.
    pub end: Option<Instant>,
}

type Shared = Arc<Mutex<Option<Found>>>;

/// A stretch that may go on.
struct Open {
    statement: u32,
    thread: u32,
    start: Instant,
    /// When it began, its last kept instruction, and the last of all.
    first: u64,
    kept: u64,
    last: u64,
    /// Where it goes on after the last kept one, and where it was seen next if that is not known.
    end: Instant,
    arrival: Option<Instant>,
    /// Lines written after that.
    tentative: Vec<u64>,
}

/// What is known of an instruction.
#[derive(Clone, Copy)]
struct Facts {
    flow: FlowControl,
    next: u64,
    target: u64,
    /// Whether its result comes from outside the program.
    outside: bool,
}

/// The consumer.
pub struct Finder {
    kept: Kept,
    /// How many of the moments have come.
    passed: usize,
    moment: u64,
    time: u64,
    thread: u32,
    /// Where each thread is expected to go on.
    expected: FxHashMap<u32, u64>,
    open: Option<Open>,
    /// When the last stretch ended.
    ended: u64,
    lines: FxHashSet<u64>,
    gap: Gap,
    found: Found,
    facts: FxHashMap<(u64, [u8; shape::MAX_LENGTH]), Facts>,
    decoder: Decoder,
    bases: Bases,
    explicit: Vec<ExplicitAccess>,
    /// The end of the heap, and words that the kernel clears when threads end.
    heap: Option<u64>,
    cleared: Vec<u64>,
    broken: bool,
    shared: Shared,
}

impl Finder {
    /// A consumer, and where it leaves what it found.
    pub fn new(kept: Kept, time: u64) -> (Self, Shared) {
        let shared = Shared::default();
        let finder = Self {
            kept,
            passed: 0,
            moment: 0,
            time,
            thread: 0,
            expected: FxHashMap::default(),
            open: None,
            ended: 0,
            lines: FxHashSet::default(),
            gap: Gap::default(),
            found: Found::default(),
            facts: FxHashMap::default(),
            decoder: Decoder::default(),
            bases: Bases::default(),
            explicit: Vec::new(),
            heap: None,
            cleared: Vec::new(),
            broken: false,
            shared: shared.clone(),
        };
        (finder, shared)
    }

    fn is_over(&self) -> bool {
        self.found.end.is_some()
    }

    fn record(&mut self, record: Record<'_, '_>) {
        if self.is_over() {
            return;
        }
        match record {
            Record::Thread(thread, bases) => {
                if thread != self.thread {
                    self.close();
                }
                (self.thread, self.bases) = (thread, bases);
            }
            Record::Accesses(list) => {
                self.broken |= read_accesses(list, &mut self.explicit).is_none();
            }
            Record::Path(path) => self.path(&path),
            Record::Cut(_, made) => {
                self.close();
                let made = self.explicit.len().min(made as usize);
                let accesses = std::mem::take(&mut self.explicit);
                for (write, address, size) in accesses.into_iter().take(made) {
                    if write {
                        self.wrote(address, size.into());
                    }
                }
            }
            Record::Buffers(buffers) => {
                self.close();
                for buffer in buffers.flatten().filter(|buffer| buffer.write) {
                    self.wrote(buffer.address, buffer.length);
                }
            }
            Record::Syscall(number, arguments, answer) => {
                self.close();
                self.called(number, arguments, answer);
            }
            Record::Single(_) | Record::Probe(..) => {}
        }
    }

    fn path(&mut self, path: &Path<'_, '_>) {
        let mut events = Vec::new();
        let (bases, mut explicit) = (self.bases, std::mem::take(&mut self.explicit));
        let expanded = expand(path, bases, &mut explicit, &mut |event| events.push(event));
        self.broken |= expanded.is_none();
        self.explicit = explicit;
        let mut instructions = path.shape.instructions.iter();
        for event in events {
            match event {
                Event::Instruction { taken, .. } => {
                    let Some(instruction) = instructions.next() else { return };
                    self.executed(instruction, taken);
                }
                Event::Interrupted { .. } => self.close(),
                Event::Access { address, size, write: true } if !self.is_over() => {
                    self.wrote(address, size.into());
                }
                _ => {}
            }
        }
    }

    fn executed(&mut self, instruction: &shape::Instruction, taken: bool) {
        let (moment, pc) = (self.moment, instruction.pc);
        self.moment += 1;
        if moment >= self.kept.until {
            if !self.is_over() {
                self.close();
                self.found.end = Some(Instant { time: self.time, pc: Some(pc) });
                self.gap.instructions = moment - self.ended;
            }
            return;
        }
        self.arrived(pc);
        let facts = self.facts_of(instruction);
        let chosen = self.kept.moments.get(self.passed) == Some(&moment);
        self.passed += usize::from(chosen);
        let statement = self.kept.statements.get(&pc).copied().filter(|_| !facts.outside);
        let goes_on = self.open.as_ref().is_some_and(|open| {
            open.thread == self.thread
                && Some(open.statement) == statement
                && open.last + 1 == moment
        });
        if !goes_on {
            self.close();
        }
        let kept = statement.filter(|_| chosen);
        if let (Some(statement), None) = (kept, &self.open) {
            self.begin(statement, moment, pc);
        }
        let next = next(&facts, taken);
        self.time += u64::from(ticks(&facts, pc, taken));
        match next {
            Some(next) => self.expected.insert(self.thread, next),
            None => self.expected.remove(&self.thread),
        };
        if let Some(open) = &mut self.open {
            open.last = moment;
            if kept.is_some() {
                open.kept = moment;
                open.end = Instant { time: self.time, pc: next };
                open.arrival = None;
                open.tentative.clear();
            }
        }
    }

    /// The thread goes on at this address.
    fn arrived(&mut self, pc: u64) {
        if self.expected.get(&self.thread).is_some_and(|expected| *expected != pc) {
            self.close();
            self.gap.handlers.push(Instant { time: self.time, pc: Some(pc) });
        }
        let here = Instant { time: self.time, pc: Some(pc) };
        if let Some(open) = &mut self.open
            && open.kept == open.last
            && open.thread == self.thread
        {
            open.arrival.get_or_insert(here);
        } else if let Some(stretch) = self.found.stretches.last_mut()
            && stretch.thread == self.thread
            && stretch.end.pc.is_none()
        {
            stretch.arrival.get_or_insert(here);
        }
    }

    fn begin(&mut self, statement: u32, moment: u64, pc: u64) {
        let start = Instant { time: self.time, pc: Some(pc) };
        self.gap.instructions = moment - self.ended;
        self.open = Some(Open {
            statement,
            thread: self.thread,
            start,
            first: moment,
            kept: moment,
            last: moment,
            end: start,
            arrival: None,
            tentative: Vec::new(),
        });
    }

    /// The stretch that is open, if any, does not go on.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let before = self.take_gap();
        self.lines.extend(open.tentative);
        self.ended = open.kept + 1;
        self.found.stretches.push(Stretch {
            thread: open.thread,
            start: open.start,
            end: open.end,
            arrival: open.arrival.filter(|_| open.end.pc.is_none()),
            instructions: self.ended - open.first,
            before,
        });
    }

    fn take_gap(&mut self) -> Gap {
        let mut gap = std::mem::take(&mut self.gap);
        gap.lines = self.lines.drain().collect();
        gap.lines.sort_unstable();
        gap
    }

    fn wrote(&mut self, address: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let lines = address / LINE..=address.saturating_add(bytes - 1) / LINE;
        match &mut self.open {
            Some(open) if open.kept == open.last => {}
            Some(open) => open.tentative.extend(lines),
            None if bytes > LONG => self.gap.ranges.push((address, bytes)),
            None => self.lines.extend(lines),
        }
    }

    /// A system call has returned: what it did to memory beside what it wrote there.
    fn called(&mut self, number: u64, arguments: [u64; 6], answer: i64) {
        let [a, b, c, d, ..] = arguments;
        if number == n::rt_sigreturn {
            self.expected.remove(&self.thread);
        }
        let Ok(answer) = u64::try_from(answer) else { return };
        let up = |address: u64| address.div_ceil(PAGE) * PAGE;
        match number {
            n::mmap if b > 0 => {
                let anonymous = d & MAP_ANONYMOUS != 0;
                self.gap.mapped.push((answer, answer + up(b), c as i32, !anonymous));
            }
            n::mremap if c > 0 => self.gap.mapped.push((answer, answer + up(c), READ_WRITE, true)),
            n::brk => {
                let heap = self.heap.replace(answer).unwrap_or(answer);
                if up(answer) > up(heap) {
                    self.gap.mapped.push((up(heap), up(answer), READ_WRITE, false));
                }
            }
            n::madvise if matches!(c, MADV_DONTNEED | MADV_REMOVE) => self.wrote(a, up(b)),
            CLONE => {
                self.wrote(c, 4);
                self.wrote(d, 4);
                self.cleared.push(d);
            }
            SET_TID_ADDRESS => self.cleared.push(a),
            EXIT => {
                for word in self.cleared.clone() {
                    self.wrote(word, 4);
                }
            }
            _ => {}
        }
    }

    fn facts_of(&mut self, instruction: &shape::Instruction) -> Facts {
        *self.facts.entry((instruction.pc, instruction.bytes)).or_insert_with(|| {
            let code = instruction.code();
            let decoded =
                Disassembler::with_ip(64, code, instruction.pc, DecoderOptions::NONE).decode();
            let traps = matches!(
                decoded.mnemonic(),
                Mnemonic::Syscall | Mnemonic::Int | Mnemonic::Int1 | Mnemonic::Int3
            );
            let outside = traps || engine::is_emulated(&decoded);
            let flow = decoded.flow_control();
            Facts { flow, next: decoded.next_ip(), target: decoded.near_branch_target(), outside }
        })
    }
}

/// Where an instruction goes on, if it says so itself.
fn next(facts: &Facts, taken: bool) -> Option<u64> {
    match facts.flow {
        _ if facts.outside => Some(facts.next),
        FlowControl::ConditionalBranch if !taken => Some(facts.next),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::Call => {
            (facts.target != 0).then_some(facts.target)
        }
        FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return => None,
        _ => Some(facts.next),
    }
}

/// Whether an executed instruction is a tick.
fn ticks(facts: &Facts, pc: u64, taken: bool) -> bool {
    match facts.flow {
        FlowControl::ConditionalBranch => taken && facts.target <= pc,
        FlowControl::UnconditionalBranch => facts.target <= pc,
        FlowControl::Call if !facts.outside => facts.target <= pc,
        FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return => true,
        _ => false,
    }
}

impl Consumer for Finder {
    fn records(&mut self, bytes: &[u8]) {
        let mut decoder = std::mem::take(&mut self.decoder);
        self.broken |= decoder.records(bytes, |record| self.record(record)).is_err();
        self.decoder = decoder;
    }

    fn end(&mut self) {
        self.close();
        if self.broken {
            return;
        }
        let mut found = std::mem::take(&mut self.found);
        if found.end.is_none() {
            self.gap.instructions = self.moment - self.ended;
        }
        found.after = self.take_gap();
        *self.shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(found);
    }
}

const PAGE: u64 = 4096;
const READ_WRITE: i32 = 3;
const MAP_ANONYMOUS: u64 = 0x20;
const MADV_DONTNEED: u64 = 4;
const MADV_REMOVE: u64 = 9;
const CLONE: u64 = 56;
const EXIT: u64 = 60;
const SET_TID_ADDRESS: u64 = 218;
