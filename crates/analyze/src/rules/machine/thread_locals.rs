//! Variables of which every thread has its own, as blocks: those of the program, whose place below the thread
//! pointer its linker has fixed. Of shared libraries only the loader knows.

use super::code::Pointer;
use super::tags::Tag;
use super::{Machine, Thread};
use crate::rules::model::REGION_GLOBAL;
use crate::rules::state::{BlockFacts, BlockId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Set in the number of such a variable, besides how far below the thread pointer it begins.
pub const THREAD_LOCAL: u32 = 1 << 30;

/// The variables, and their blocks in each thread.
#[derive(Clone, Default)]
pub struct ThreadLocals {
    /// Bytes, by how far below the thread pointer each begins, from the lowest on.
    sizes: BTreeMap<i64, u64>,
    /// By thread pointer and place.
    blocks: FxHashMap<(u64, i64), BlockId>,
}

impl ThreadLocals {
    /// There is a variable of so many bytes, so far below the thread pointer.
    pub fn add(&mut self, below: u64, size: u64) {
        if below < u64::from(THREAD_LOCAL) {
            self.sizes.entry(-(below as i64)).or_insert(size);
        }
    }

    fn at(&self, offset: i64) -> Option<(i64, u64)> {
        let (begin, size) = self.sizes.range(..=offset).next_back()?;
        ((offset - begin) < *size as i64).then_some((*begin, *size))
    }
}

impl Machine {
    /// From here on the running thread has this thread pointer.
    pub fn set_thread_pointer(&mut self, pointer: u64) {
        let known = self.running().pointer;
        if pointer == 0 || known.is_some_and(|(at, _)| at == pointer) {
            return;
        }
        let facts = BlockFacts { begin: 0, size: u64::MAX, time: self.time, family: 0, region: 0 };
        let block = self.blocks.add(facts, 0, false);
        let thread: &mut Thread = self.thread();
        thread.pointer = Some((pointer, block));
    }

    /// What a sum carries if one side carries a tag and the other is a constant: a pointer that is made from
    /// the thread pointer is to one of the thread's own variables.
    pub(super) fn own_variable(&mut self, tag: Tag, by: i64) -> Tag {
        match self.running().pointer {
            Some((_, block)) if tag == Tag::of(block) => {
                self.own_block(by).map(Tag::of).unwrap_or_default()
            }
            _ => tag,
        }
    }

    /// The variable of which an instruction accesses an element: the address of the variable stands in it.
    pub(super) fn own_element(&mut self, how: &Pointer) -> Option<BlockId> {
        self.own_block(how.displacement)
    }

    fn own_block(&mut self, offset: i64) -> Option<BlockId> {
        let (pointer, _) = self.running().pointer?;
        let (at, size) = self.thread_locals.at(offset)?;
        let Self { blocks, thread_locals, time, .. } = self;
        let begin = pointer.wrapping_add_signed(at);
        let facts = BlockFacts { begin, size, time: *time, family: 0, region: REGION_GLOBAL };
        let number = THREAD_LOCAL | at.unsigned_abs() as u32;
        let known = thread_locals.blocks.entry((pointer, at));
        Some(*known.or_insert_with(|| blocks.add_variable(facts, 0, number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::needs::Needs;

    #[test]
    fn every_thread_has_its_own() {
        let mut machine = Machine::new(Needs::default(), false);
        machine.thread_locals.add(0x40, 8);
        machine.thread_locals.add(0x38, 4);
        machine.switch(1);
        assert_eq!(machine.own_block(-0x40), None, "nobody knows where");
        machine.set_thread_pointer(0x7000);
        let begin = |machine: &Machine, id| machine.blocks.get(id).expect("known").facts.begin;
        let first = machine.own_block(-0x40).expect("it is there");
        assert_eq!(begin(&machine, first), 0x6fc0);
        assert_eq!(machine.own_block(-0x3a), Some(first), "inside");
        assert_eq!(machine.own_block(-0x30), None, "behind all");
        let (_, pointer) = machine.running().pointer.expect("just told");
        assert_eq!(machine.own_variable(Tag::of(pointer), -0x40), Tag::of(first));
        assert_eq!(machine.own_variable(Tag::of(first), 8), Tag::of(first));
        machine.switch(2);
        machine.set_thread_pointer(0x9000);
        let second = machine.own_block(-0x40).expect("it is there");
        assert_eq!(begin(&machine, second), 0x8fc0);
    }
}
