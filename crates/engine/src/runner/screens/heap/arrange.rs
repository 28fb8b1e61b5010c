//! Blocks, and how they are painted.

use super::{BESIDE, FREED, TAIL};
use crate::layout::{BLANK, BLANK_BASE, SHADOW_BASE};
use crate::runner::address_map::AddressMap;
use crate::runner::cpu::Cpu;
use crate::runner::engine::Engine;
use crate::runner::report;
use crate::runner::screens::allocators::{Allocators, Call, HeapBlock, Outcome};
use crate::runner::screens::shadow::Table;
use crate::runner::screens::{Calls, provenance, shadow};
use crate::runner::thread::Thread;
use crate::sys;
use contracts::Contract;
use events::plan::{self, GRANULE, Paint};
use events::suspicion::Suspicion;
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks whose last granule is tested, as a look costs microseconds: the first ones, the first ones of
/// each caller, and of all others one in so many.
const TESTED_TAILS: u64 = 2000;
const TESTED_OF_CALLER: u64 = 64;
const SAMPLED_TAILS: u64 = 512;
/// Bytes on either side of a block where an access is suspicious.
const MARGIN: u64 = 64;
/// Blocks from this size on may have a mapping of their own.
const MAPPED: u64 = 64 << 10;
const PAGE: u64 = 4096;

/// The heap's blocks.
#[derive(Default)]
pub struct Heap {
    /// The functions that are followed.
    pub allocators: Allocators,
    /// Live blocks by address.
    pub(super) live: BTreeMap<u64, HeapBlock>,
    /// Functions that are judged by their contracts.
    pub(super) library: AddressMap<&'static Contract>,
    /// Looks at the last granule of a block that found nothing.
    pub(super) looks: AddressMap<u16>,
    /// Whether blocks have tags.
    provenance: bool,
    /// Whether the tables are there.
    mapped: bool,
    /// Tags so far.
    tags: u64,
    /// Blocks so far, and of those the ones of each caller of an allocator.
    count: u64,
    of_caller: AddressMap<u64>,
}

/// What a thread tests against.
pub fn shadow_of(calls: &Calls) -> u64 {
    if calls.heap.is_some() { BLANK_BASE } else { SHADOW_BASE }
}

fn paint(range: Range<u64>, bits: u8) {
    Table.paint(&Paint { range, bits });
}

impl Heap {
    /// What a plan asks for.
    pub fn arrange(&mut self, cpu: &mut Cpu, asked: &plan::Heap) {
        if !std::mem::replace(&mut self.mapped, true) {
            map_tables(cpu);
        }
        self.provenance = asked.provenance;
        self.allocators.arrange(&asked.functions);
    }

    /// A function with a contract has been found.
    pub fn add_contract(&mut self, function: u64, name: &str) {
        if let Some(contract) = contracts::named(name) {
            self.library.insert(function, contract);
        }
    }

    /// A function has been called: where its return address stands, and what it is. Whether the
    /// call is invalid.
    fn entered(
        &mut self,
        cpu: &mut Cpu,
        thread: &mut Thread,
        function: u64,
        (stack, back): (u64, u64),
        arguments: [u64; 6],
    ) -> bool {
        let Some(followed) = self.allocators.get(function) else { return false };
        if thread.calls.heap.is_some_and(|call| call.holds(stack, back)) {
            return false;
        }
        // Before the function does it, so that nobody else has the memory yet.
        let freed = followed.frees().then(|| self.free(arguments[0])).flatten();
        let invalid = followed.is_invalid_call(&arguments, freed.map(|block| block.family));
        thread.calls.heap = Some(Call { followed, stack, back, arguments, freed });
        cpu.shadow = BLANK_BASE;
        cpu.tag_mask = provenance::mask(true);
        invalid
    }

    /// The thread is at a site, with a stack that has given up what stood at `stack`.
    fn came_back(
        &mut self,
        cpu: &mut Cpu,
        thread: &mut Thread,
        pc: u64,
        (stack, value): (u64, u64),
    ) {
        let Some(call) = thread.calls.heap.take_if(|call| call.stack <= stack) else { return };
        cpu.shadow = SHADOW_BASE;
        cpu.tag_mask = provenance::mask(false);
        if (call.stack, call.back) != (stack, pc) {
            // It was left by a jump.
            return;
        }
        match call.followed.outcome(&call.arguments, value) {
            Outcome::Block { begin, size } => {
                let family = call.followed.family;
                self.allocate(begin, HeapBlock { size, family }, call.back);
            }
            Outcome::Failed => {
                if let Some(before) = call.freed {
                    self.allocate(call.arguments[0], before, call.back);
                }
            }
            Outcome::Measured { begin, usable } => {
                let known = self.live.get(&begin).copied();
                if let Some(block) = known.filter(|block| block.size < usable) {
                    self.allocate(begin, HeapBlock { size: usable, ..block }, call.back);
                }
            }
            Outcome::Nothing => {}
        }
    }

    fn free(&mut self, begin: u64) -> Option<HeapBlock> {
        let block = self.live.remove(&begin)?;
        if block.size > 0 {
            paint(begin..block.end(begin), FREED);
            self.untag(begin, block);
        }
        Some(block)
    }

    fn untag(&self, begin: u64, block: HeapBlock) {
        if self.provenance {
            provenance::untag(&(begin..block.end(begin)));
        }
    }

    fn allocate(&mut self, begin: u64, block: HeapBlock, caller: u64) {
        let Some(end) = begin.checked_add(block.size).filter(|_| begin != 0) else { return };
        self.live.insert(begin, block);
        if block.size > 0 {
            paint(begin..end, 0);
            self.tags += 1;
            if self.provenance {
                provenance::tag(&(begin..end), self.tags);
            }
        }
        if !end.is_multiple_of(GRANULE) && self.is_tail_tested(caller) {
            self.looks.remove(&(end / GRANULE));
            paint(end..end + 1, TAIL);
        }
        for beside in self.beside(begin, end) {
            Table.paint_blank(beside, BESIDE);
        }
    }

    /// Whether the last granule of one more block is tested.
    fn is_tail_tested(&mut self, caller: u64) -> bool {
        self.count += 1;
        let own = self.of_caller.entry(caller).or_default();
        *own += 1;
        self.count < TESTED_TAILS || *own < TESTED_OF_CALLER || own.is_multiple_of(SAMPLED_TAILS)
    }

    /// What lies next to a block on either side, as far as no other block is there.
    fn beside(&self, begin: u64, end: u64) -> [Range<u64>; 2] {
        let before = self.live.range(..begin).next_back().map_or(0, |(at, block)| block.end(*at));
        let after = self.live.range(begin + 1..).next().map_or(u64::MAX, |(at, _)| *at);
        let end = end.next_multiple_of(GRANULE);
        let mut low = begin.saturating_sub(MARGIN).max(before.next_multiple_of(GRANULE));
        let mut high = end.saturating_add(MARGIN).min(after);
        if end - begin >= MAPPED {
            // What is mapped next to it is somebody else's.
            (low, high) = (low.max(begin & !(PAGE - 1)), high.min(end.next_multiple_of(PAGE)));
        }
        [low & !(GRANULE - 1)..begin & !(GRANULE - 1), end..high]
    }

    /// Memory has been mapped anew or is gone: no block is there.
    fn forget(&mut self, range: Range<u64>) {
        let gone: Vec<u64> = self.live.range(range.clone()).map(|(begin, _)| *begin).collect();
        for begin in gone {
            if let Some(block) = self.live.remove(&begin) {
                self.untag(begin, block);
            }
        }
        paint(range, 0);
    }
}

/// Maps the table of tags, and the shadow in which everything passes; its pages are all the one that is
/// always zero.
fn map_tables(cpu: &mut Cpu) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let bytes = BLANK.end - BLANK.start;
    // SAFETY: the range is the engine's own and holds nothing else.
    let mapped = unsafe { sys::map_fixed(BLANK.start, bytes, libc::PROT_READ, flags, -1, 0) };
    if let Err(error) = mapped.and(shadow::leave_out_own(BLANK_BASE)).and(provenance::map()) {
        report::refuse(&format!("no tables for the heap: error {error}"), 0);
    }
    cpu.tag_mask = provenance::mask(false);
}

impl Engine {
    /// A function has been called that may allocate or free.
    pub fn enter_heap(
        &mut self,
        thread: &mut Thread,
        function: u64,
        (stack, back): (u64, u64),
        arguments: [u64; 6],
    ) {
        let Some(heap) = &mut self.observed.screens.heap else { return };
        let invalid = heap.entered(&mut self.cpu, thread, function, (stack, back), arguments);
        if invalid && !self.is_own_call(back) {
            let argument = arguments[0];
            self.suspect(function, Suspicion::InvalidCall { argument, recounted: false });
        }
    }

    /// Whether an allocator was called by itself.
    fn is_own_call(&self, back: u64) -> bool {
        let (Some(heap), Some(library)) = (&self.observed.screens.heap, self.library(back)) else {
            return false;
        };
        heap.allocators.is_own(back, &library)
    }

    /// One may have returned.
    pub fn leave_heap(&mut self, thread: &mut Thread, pc: u64, (stack, value): (u64, u64)) {
        if let Some(heap) = &mut self.observed.screens.heap {
            heap.came_back(&mut self.cpu, thread, pc, (stack.wrapping_sub(8), value));
        }
    }

    /// Memory has been mapped anew or is gone.
    pub fn blank(&mut self, range: Range<u64>) {
        if let Some(heap) = &mut self.observed.screens.heap {
            heap.forget(range);
        }
    }
}
