//! What a pointer was made from, and what becomes of that in arithmetic, choices and copies of parts.

use super::heap::Blocks;
use crate::rules::state::BlockId;
use rustc_hash::FxHashMap;

/// What a pointer was made from.
///
/// The difference of two pointers is kept too: `p + (new - old)` moves a pointer from one block to
/// another, as compilers and programs that relocate do. Where an instruction takes one of two values,
/// both are kept until an address tells which it was. Eight bytes that are parts of two words remember
/// both: structures of odd sizes are copied in pieces that overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag(u32);

const DIFFERENCE: u32 = 1 << 31;
const EITHER: u32 = 1 << 30;
/// Both bits.
const SPLIT: u32 = DIFFERENCE | EITHER;

impl Tag {
    /// A pointer into this block.
    #[must_use]
    pub fn of(block: BlockId) -> Self {
        Self(block.0)
    }

    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The block, if it is a pointer.
    #[must_use]
    pub fn block(self) -> Option<BlockId> {
        (self.0 != 0 && self.0 & SPLIT == 0).then_some(BlockId(self.0))
    }
}

/// Differences and choices that are remembered; later ones are not.
const MOST_DIFFERENCES: usize = 1 << 20;
/// Blocks that one pointer may be made from.
const MOST_CHOICES: usize = 4;
/// How far behind its block an access is taken to be through a pointer that may not be one to it.
const NEAR: u64 = 64;

/// What a pointer may have been made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Choice {
    blocks: Vec<BlockId>,
    /// Whether it may be something else as well.
    other: bool,
}

/// How tags behave under arithmetic.
#[derive(Clone, Default)]
pub struct Arithmetic {
    differences: Vec<(Tag, Tag)>,
    numbers: FxHashMap<(Tag, Tag), u32>,
    choices: Vec<Choice>,
    choice_numbers: FxHashMap<Choice, u32>,
    forgotten: Vec<BlockId>,
    splits: Vec<Split>,
    split_numbers: FxHashMap<Split, u32>,
    /// The tag of whatever was there when a window began, if one did.
    before: Tag,
    /// Blocks that have another size at the same place, and what they are now.
    renewed: FxHashMap<BlockId, BlockId>,
    /// Those of them whose old pointers are good, as the program has compared them with the new ones.
    compared: FxHashMap<BlockId, BlockId>,
}

/// The upper bytes of one word and the lower bytes of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// How far into the first word they begin.
    pub offset: u64,
    /// Of the first word.
    pub upper: Tag,
    /// Of the second.
    pub lower: Tag,
}

impl Arithmetic {
    /// What has this tag may be anything, and so may be what is made from it.
    pub fn begin_window(&mut self, before: Tag) {
        self.before = before;
    }

    /// A block has another size at the same place.
    pub fn renewed(&mut self, old: BlockId, new: BlockId) {
        self.renewed.insert(old, new);
    }

    /// Two values are compared: if one is a pointer to what the other's block was before, the program knows
    /// that it has not moved.
    pub fn compare(&mut self, left: Tag, right: Tag) {
        if self.renewed.is_empty() {
            return;
        }
        if let (Some(left), Some(right)) = (left.block(), right.block()) {
            self.keep(left, right);
            self.keep(right, left);
        }
    }

    /// If one block has become the other, all between have.
    fn keep(&mut self, old: BlockId, new: BlockId) {
        let next = |id: &BlockId| self.renewed.get(id).copied();
        let way: Vec<BlockId> =
            std::iter::successors(Some(old), next).take_while(|id| *id != new).collect();
        if way.last().and_then(next) == Some(new) {
            self.compared.extend(way.into_iter().map(|id| (id, new)));
        }
    }

    /// What a block is now, if the program knows.
    fn now(&self, id: BlockId) -> BlockId {
        match self.compared.is_empty() {
            true => id,
            false => {
                let next = |id: &BlockId| self.compared.get(id).copied();
                std::iter::successors(Some(id), next).last().unwrap_or(id)
            }
        }
    }

    /// Whether one of two values may be anything.
    fn is_before(&self, left: Tag, right: Tag) -> bool {
        !self.before.is_none() && (left == self.before || right == self.before)
    }

    /// The tag of a sum.
    #[must_use]
    pub fn sum(&self, left: Tag, right: Tag) -> Tag {
        if self.is_before(left, right) {
            return self.before;
        }
        if left.0 & SPLIT == SPLIT || right.0 & SPLIT == SPLIT {
            return Tag::default();
        }
        if right.is_none() {
            return left;
        }
        if left.is_none() {
            return right;
        }
        self.moved(left, right).or_else(|| self.moved(right, left)).unwrap_or_default()
    }

    /// The tag of `left - right`.
    pub fn difference(&mut self, left: Tag, right: Tag) -> Tag {
        if self.is_before(left, right) {
            return self.before;
        }
        if right.is_none() {
            return left;
        }
        self.compare(left, right);
        // p - (p - q) is q.
        if let Some((to, from)) = self.parts(right)
            && to == left
            && !to.is_none()
        {
            return from;
        }
        // A number minus a pointer is remembered too: `memcpy` adds the pointer again.
        let pointer = left.is_none() || left.block().is_some();
        if !pointer || right.block().is_none() || left == right {
            return Tag::default();
        }
        if let Some(known) = self.numbers.get(&(left, right)) {
            return Tag(*known);
        }
        if self.differences.len() >= MOST_DIFFERENCES {
            return Tag::default();
        }
        self.differences.push((left, right));
        let number = DIFFERENCE | self.differences.len() as u32;
        self.numbers.insert((left, right), number);
        Tag(number)
    }

    /// The tag of one of two values, nobody knows which.
    pub fn choice(&mut self, left: Tag, right: Tag) -> Tag {
        if left == right {
            return left;
        }
        if self.is_before(left, right) {
            return self.before;
        }
        let (mut choice, more) = (self.choice_of(left), self.choice_of(right));
        choice.blocks.extend(more.blocks);
        choice.blocks.sort_unstable();
        choice.blocks.dedup();
        choice.other |= more.other;
        if choice.blocks.is_empty() {
            return Tag::default();
        }
        if let Some(known) = self.choice_numbers.get(&choice) {
            return Tag(*known);
        }
        if choice.blocks.len() > MOST_CHOICES || self.choices.len() >= MOST_DIFFERENCES {
            self.forgotten.extend(choice.blocks);
            return Tag::default();
        }
        let number = EITHER | self.choices.len() as u32;
        self.choice_numbers.insert(choice.clone(), number);
        self.choices.push(choice);
        Tag(number)
    }

    fn choice_of(&self, tag: Tag) -> Choice {
        match self.chosen(tag) {
            Some(choice) => choice.clone(),
            None => {
                Choice { blocks: tag.block().into_iter().collect(), other: tag.block().is_none() }
            }
        }
    }

    fn chosen(&self, tag: Tag) -> Option<&Choice> {
        let either = tag.0 & SPLIT == EITHER;
        either.then(|| &self.choices[(tag.0 & !EITHER) as usize])
    }

    /// The blocks that a pointer with this tag may point into.
    pub fn candidates(&self, tag: Tag) -> impl Iterator<Item = BlockId> + '_ {
        let several = self.chosen(tag).map_or(&[][..], |choice| &choice.blocks);
        tag.block().into_iter().chain(several.iter().copied())
    }

    /// Blocks that pointers may have been made from whose tags were too much to keep.
    pub fn forgotten(&self) -> &[BlockId] {
        &self.forgotten
    }

    /// The block of a pointer that is used for this address. Of several it is the one that has the
    /// address, a live one before one that was freed; if none has it, the nearest. If the pointer may be
    /// to something else, that is taken to be where the address is, unless the block is live and has it or
    /// lies right before it.
    #[must_use]
    pub fn resolve(&self, tag: Tag, address: u64, blocks: &Blocks) -> Option<BlockId> {
        let Some(choice) = self.chosen(tag) else { return tag.block().map(|id| self.now(id)) };
        let known = |id: &BlockId| blocks.get(*id).filter(|block| !block.unplaced);
        let rank = |id: &BlockId| known(id).map(|b| (b.distance(address), !b.is_live(), *id));
        let best = choice.blocks.iter().filter_map(rank).min();
        // One whose address is not known yet may well have it.
        let unplaced = choice.blocks.iter().copied().find(|id| known(id).is_none());
        if let Some(unplaced) =
            unplaced.filter(|_| !best.is_some_and(|(by, freed, _)| by == 0 && !freed))
        {
            return Some(unplaced);
        }
        let (distance, freed, id) = best?;
        let there = blocks.containing(address);
        let elsewhere = freed || distance >= NEAR || there.is_some_and(|there| there != id);
        (!choice.other || !elsewhere).then_some(id)
    }

    /// The tag of eight bytes that begin inside of a word, from the tags of both words.
    pub fn split(&mut self, offset: u64, upper: Tag, lower: Tag) -> Tag {
        if upper.is_none() && lower.is_none() {
            return Tag::default();
        }
        let split = Split { offset, upper, lower };
        if let Some(known) = self.split_numbers.get(&split) {
            return Tag(*known);
        }
        if self.splits.len() >= MOST_DIFFERENCES {
            return Tag::default();
        }
        let number = SPLIT | self.splits.len() as u32;
        self.split_numbers.insert(split, number);
        self.splits.push(split);
        Tag(number)
    }

    /// Of which words they are parts.
    #[must_use]
    pub fn parts_of_words(&self, tag: Tag) -> Option<Split> {
        (tag.0 & SPLIT == SPLIT).then(|| self.splits[(tag.0 & !SPLIT) as usize])
    }

    fn parts(&self, tag: Tag) -> Option<(Tag, Tag)> {
        let index = (tag.0 & SPLIT == DIFFERENCE).then_some(tag.0 & !DIFFERENCE)?;
        self.differences.get(index as usize - 1).copied()
    }

    /// `from + (to - from)`
    fn moved(&self, pointer: Tag, difference: Tag) -> Option<Tag> {
        let (to, from) = self.parts(difference)?;
        (from == pointer).then_some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::blocks::Release;
    use crate::rules::machine::Freed;
    use crate::rules::machine::chains::Node;
    use crate::rules::model::REGION_HEAP;
    use crate::rules::state::{BlockFacts, Pointer};

    #[test]
    fn differences_move_pointers_between_blocks() {
        let mut arithmetic = Arithmetic::default();
        let (old, new, other) = (Tag(1), Tag(2), Tag(3));
        let shift = arithmetic.difference(new, old);
        assert_eq!(shift.block(), None);
        assert_eq!(arithmetic.sum(old, shift), new);
        assert_eq!(arithmetic.sum(shift, old), new);
        assert_eq!(arithmetic.difference(new, shift), old);
        assert_eq!(arithmetic.sum(other, shift), Tag::default());
        assert_eq!(arithmetic.difference(new, new), Tag::default());
        assert_eq!(arithmetic.sum(Tag::default(), new), new);
        // source - target + target, as memcpy computes it.
        let apart = arithmetic.difference(Tag::default(), new);
        assert_eq!(arithmetic.sum(apart, new), Tag::default());
        assert_eq!(arithmetic.difference(Tag::default(), apart).block(), None);
    }

    #[test]
    fn an_address_tells_which_of_two_pointers_it_was() {
        let mut blocks = Blocks::default();
        let mut block = |begin, size| {
            let facts = BlockFacts { begin, size, time: 0, family: 0, region: REGION_HEAP };
            blocks.allocate(facts, 0)
        };
        let (one, two, third) = (block(0x1000, 60), block(0x2000, 60), block(0x3000, 60));
        let mut arithmetic = Arithmetic::default();
        let either = arithmetic.choice(Tag::of(one), Tag::of(two));
        let perhaps = arithmetic.choice(Tag::of(one), Tag::default());
        assert_eq!(arithmetic.choice(Tag::of(two), Tag::of(one)), either);
        assert_eq!(arithmetic.choice(either, Tag::of(one)), either);
        let rows = [
            (either, 0x1008, Some(one)),
            (either, 0x203b, Some(two)),
            (either, 0x203c, Some(two)), // the nearest
            (either, 0x3000, Some(two)), // of these two it is none, so it is wrong
            (perhaps, 0x1000, Some(one)),
            (perhaps, 0x103c, Some(one)),
            (perhaps, 0x2000, None), // the other one, which nobody knows
            (perhaps, 0x7000, None),
            (Tag::of(third), 0x1000, Some(third)),
        ];
        for (tag, address, expected) in rows {
            assert_eq!(arithmetic.resolve(tag, address, &blocks), expected, "{address:x}");
        }
        let release = Release {
            time: 1,
            how: Freed {
                when: None,
                pointer: Pointer { address: 0x1000, block: Some(one) },
                chain: Node::default(),
            },
            stack: 0,
        };
        blocks.release(one, release);
        assert_eq!(arithmetic.resolve(either, 0x1008, &blocks), Some(one));
        assert_eq!(
            arithmetic.resolve(perhaps, 0x1008, &blocks),
            None,
            "memory that somebody has again"
        );
        assert_eq!(arithmetic.candidates(either).collect::<Vec<_>>(), [one, two]);
        let shifted = arithmetic.sum(either, Tag::default());
        assert_eq!(shifted, either);
    }

    #[test]
    fn a_pointer_that_was_compared_with_its_successor_is_one_to_it() {
        let blocks = Blocks::default();
        let mut arithmetic = Arithmetic::default();
        let [first, second, third, other] = [1, 2, 3, 4].map(BlockId);
        arithmetic.renewed(first, second);
        arithmetic.renewed(second, third);
        arithmetic.compare(Tag::of(first), Tag::of(other));
        let now = |arithmetic: &Arithmetic, id| arithmetic.resolve(Tag::of(id), 0x1000, &blocks);
        assert_eq!(now(&arithmetic, first), Some(first));
        arithmetic.compare(Tag::of(third), Tag::of(second));
        assert_eq!(now(&arithmetic, first), Some(first), "not that one");
        assert_eq!(now(&arithmetic, second), Some(third));
        arithmetic.compare(Tag::of(first), Tag::of(third));
        assert_eq!(now(&arithmetic, first), Some(third));
    }

    #[test]
    fn what_may_be_too_much_is_forgotten_but_not_lost() {
        let mut arithmetic = Arithmetic::default();
        let tag =
            (1..=5).fold(Tag::default(), |tag, id| arithmetic.choice(tag, Tag::of(BlockId(id))));
        assert!(tag.is_none());
        assert_eq!(arithmetic.forgotten().len(), 5);
    }
}
