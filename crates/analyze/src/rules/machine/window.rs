//! A part of a run that is followed: a **window**.
//!
//! Up to its beginning only allocations are told, so that every block is known. Of what registers and
//! memory hold then nobody knows what it was made from, and it carries the tag of a block that stands for
//! anything; whatever is made from it carries that too. What is decided in a window without meeting this
//! tag is decided as if all of the run had been followed. Bytes count as written unless they are seen to
//! become somebody's in the window, so what is found to be unwritten is.
//!
//! Where that is not enough, a machine can **guess**: a word that is older than the window is taken for a
//! pointer that was made from the block which it points into when the window begins.

use super::cells::{Cell, Memory};
use super::chains::Chains;
use super::numbers::Numbers;
use super::tags::Tag;
use super::unwritten::Unwritten;
use super::{Machine, Thread};
use crate::model::stacks::DEEPEST;
use crate::rules::state::{BlockFacts, BlockId};
use std::sync::Arc;

/// Superseded blocks that are kept before they are given up.
const MOST_GONE: usize = 1 << 20;

/// Numbers up to this, and down to minus this, are no pointers.
const SMALL: u64 = 1 << 16;

/// Tells what stood at an address when the window began.
pub type Words = Arc<dyn Fn(u64) -> Option<u64> + Send + Sync>;

/// What is known where a window begins.
#[derive(Clone, Default)]
pub struct Start {
    /// The general registers of the running thread, by number.
    pub registers: [u64; 16],
    /// Its active calls, outermost first: the address of each, and where its return address stands.
    pub calls: Vec<(u64, u64)>,
    /// What memory held, to guess by.
    pub words: Option<Words>,
}

/// What is older than the window.
#[derive(Clone)]
pub(super) struct Before {
    /// Stands for anything.
    anything: BlockId,
    /// Carried by words of memory that nobody has touched since.
    untouched: Tag,
    words: Option<Words>,
}

impl Machine {
    /// From here on everything is told.
    pub fn begin_window(&mut self, start: &Start) {
        let facts = BlockFacts { begin: 0, size: u64::MAX, time: 0, family: 0, region: 0 };
        let [anything, untouched] = [0; 2].map(|stack| self.blocks.add(facts, stack, false));
        let cell = |block| Cell { tag: Tag::of(block), node: Chains::before() };
        let old = cell(anything);
        self.arithmetic.begin_window(old.tag);
        self.memory = Memory::unknown(cell(untouched), old);
        (self.unwritten, self.numbers) = (Unwritten::default(), Numbers::default());
        for thread in self.threads.states_mut() {
            *thread = Thread { inside: std::mem::take(&mut thread.inside), ..Thread::default() };
            thread.cells.fill(old);
        }
        let words = start.words.clone();
        let guesses = words.is_some();
        self.before = Some(Before { anything, untouched: Tag::of(untouched), words });
        for (number, value) in start.registers.iter().enumerate().filter(|_| guesses) {
            self.thread().cells[number].tag = self.guess(*value).unwrap_or(old.tag);
        }
        let thread = self.thread();
        thread.stack = Some(start.registers[4]);
        for (pc, slot) in &start.calls {
            thread.calls.call(*pc, *slot, None, |_| ());
        }
        self.trace_allocators(&start.calls);
    }

    /// Of allocators that are at work only the call itself was told so far.
    fn trace_allocators(&mut self, calls: &[(u64, u64)]) {
        let mut inside = std::mem::take(&mut self.thread().inside);
        for call in inside.iter_mut() {
            let outer = calls.iter().rev().filter(|(_, slot)| *slot >= call.stack);
            let stack: Vec<u64> = outer.map(|(pc, _)| *pc).take(DEEPEST).collect();
            if !stack.is_empty() {
                call.callers = self.keep_stack(stack);
            }
        }
        self.thread().inside = inside;
    }

    /// What a value carries that may have been made from anything.
    pub(super) fn unknown(&self) -> Cell {
        let cell = |before: &Before| Cell { tag: Tag::of(before.anything), node: Chains::before() };
        self.before.as_ref().map(cell).unwrap_or_default()
    }

    /// Whether a pointer is older than the window.
    #[must_use]
    pub fn is_from_before(&self, block: Option<BlockId>) -> bool {
        self.before.as_ref().is_some_and(|before| Some(before.anything) == block)
    }

    /// What a word of memory carries that is read.
    #[inline]
    pub(super) fn known(&mut self, address: u64, cell: Cell) -> Cell {
        match &self.before {
            Some(before) if before.untouched == cell.tag => self.older(address),
            _ => cell,
        }
    }

    /// A word that nobody has touched since the window began is read.
    fn older(&mut self, address: u64) -> Cell {
        let words = self.before.as_ref().and_then(|before| before.words.as_ref());
        let value = words.and_then(|words| words(address));
        let unknown = self.unknown();
        let tag = value.and_then(|value| self.guess(value)).unwrap_or(unknown.tag);
        let cell = Cell { tag, ..unknown };
        self.memory.store(address, cell);
        cell
    }

    /// What a word of this value was probably made from: the heap block that it points into, or none if it
    /// is a small number. Nothing if nobody knows: it points behind its own block, or elsewhere.
    fn guess(&self, value: u64) -> Option<Tag> {
        if value.wrapping_add(SMALL) < 2 * SMALL {
            return Some(Tag::default());
        }
        let found = self.blocks.containing(value)?;
        // Where one block ends and another begins, it may be of either.
        let before = self.blocks.containing(value - 1);
        before.is_none_or(|before| before == found).then_some(Tag::of(found))
    }

    /// Gives up blocks that have gone and whose memory others have, if there are many. Only while
    /// nothing but allocations is told: nobody else has their numbers.
    pub fn condense(&mut self) {
        if self.blocks.count() < MOST_GONE + 2 * self.blocks.current() {
            return;
        }
        self.blocks.condense();
        for thread in self.threads.states_mut() {
            thread.inside.iter_mut().for_each(|inside| inside.block = None);
        }
    }
}
