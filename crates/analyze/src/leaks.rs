//! Which blocks of the heap the program can still reach when it ends, and which are lost.
//!
//! The classes are memcheck's. A word of memory counts as a pointer if it is an address inside a block.
//! From the **roots** (registers, and memory that is no block's) blocks are reached: through pointers to their
//! beginnings they are *still reachable*, and through at least one that points into the middle *possibly lost*: it
//! may be a pointer or a number. Of the others, those that no lost block points to are *definitely lost*; the
//! rest hangs on these and is *indirectly lost*. Of a ring of lost blocks one, the last by address that
//! nothing later leads to, stands for all.
//!
//! Nothing here knows how memory is read or where blocks come from.

use std::ops::Range;

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Pointers lead to it.
    Reachable,
    /// Only pointers into its middle, or into the middle of what leads to it, do.
    Possible,
    /// Nothing leads to it.
    Definite,
    /// Only lost blocks lead to it: the number of the one that stands for them.
    Indirect(usize),
}

/// A word that may be a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// What it holds.
    pub word: u64,
    /// Whether it counts only if it is the beginning of a block: the allocator's own lists hold addresses
    /// close to the ends of blocks.
    pub only_beginnings: bool,
}

/// Takes the words of a block one by one.
type Words<'a> = &'a mut dyn FnMut(u64);

/// Classifies blocks, which are given by address, none in another. `contents` gives the words of one.
pub fn classify(
    blocks: &[Range<u64>],
    roots: impl IntoIterator<Item = Root>,
    contents: &mut dyn FnMut(usize, Words<'_>),
) -> Vec<Class> {
    let mut heap = Heap { blocks, states: vec![State::Unreached; blocks.len()], open: Vec::new() };
    for root in roots {
        heap.reach(root.word, true, root.only_beginnings);
    }
    while let Some(block) = heap.open.pop() {
        let surely = heap.states[block] == State::Reachable;
        contents(block, &mut |word| heap.reach(word, surely, false));
    }
    for leader in 0..blocks.len() {
        if heap.states[leader] != State::Unreached {
            continue;
        }
        heap.open.push(leader);
        while let Some(block) = heap.open.pop() {
            contents(block, &mut |word| heap.hang_on(word, leader));
        }
    }
    let class = |index: usize| match heap.states[index] {
        State::Reachable => Class::Reachable,
        State::Possible => Class::Possible,
        State::Unreached => Class::Definite,
        State::HangsOn(_) => Class::Indirect(heap.leader(index)),
    };
    (0..blocks.len()).map(class).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unreached,
    Possible,
    Reachable,
    /// The block that it was found from, which may itself hang on another.
    HangsOn(usize),
}

struct Heap<'a> {
    blocks: &'a [Range<u64>],
    states: Vec<State>,
    /// Blocks that are still to be looked through.
    open: Vec<usize>,
}

impl Heap<'_> {
    /// The block that an address is in. One of no bytes still has an address.
    fn at(&self, address: u64) -> Option<usize> {
        let index = self.blocks.partition_point(|block| block.start <= address).checked_sub(1)?;
        let block = &self.blocks[index];
        (address < block.end.max(block.start + 1)).then_some(index)
    }

    fn reach(&mut self, word: u64, surely: bool, only_beginnings: bool) {
        let Some(index) = self.at(word) else { return };
        let beginning = self.blocks[index].start == word;
        if only_beginnings && !beginning {
            return;
        }
        let reached = if surely && beginning { State::Reachable } else { State::Possible };
        let better = match self.states[index] {
            State::Unreached => true,
            State::Possible => reached == State::Reachable,
            State::Reachable | State::HangsOn(_) => false,
        };
        if better {
            self.states[index] = reached;
            self.open.push(index);
        }
    }

    fn hang_on(&mut self, word: u64, leader: usize) {
        let Some(index) = self.at(word) else { return };
        if index != leader && self.states[index] == State::Unreached {
            self.states[index] = State::HangsOn(leader);
            self.open.push(index);
        }
    }

    fn leader(&self, mut index: usize) -> usize {
        // A leader that hangs on another was found later than it led, so this has an end.
        while let State::HangsOn(leader) = self.states[index] {
            index = leader;
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: u64 = 32;

    /// Blocks of four words each, by number from 1; a pointer is a block and how many words into it.
    type Pointer = (usize, u64);

    fn address((block, words): Pointer) -> u64 {
        0x1000 * (block as u64 + 1) + 8 * words
    }

    fn classes(contents: &[Vec<Pointer>], roots: &[Pointer]) -> Vec<Class> {
        let blocks: Vec<_> = (0..contents.len())
            .map(|block| address((block, 0))..address((block, 0)) + SIZE)
            .collect();
        let roots = roots.iter().map(|at| Root { word: address(*at), only_beginnings: false });
        classify(&blocks, roots, &mut |block, tell| {
            contents[block].iter().for_each(|at| tell(address(*at)));
        })
    }

    #[test]
    fn a_list_whose_head_is_lost_is_lost_as_one() {
        // 0 -> 1 -> 2, nobody has 0; 3 is held; 4 only by its middle; 5 and 6 are a ring.
        let contents =
            [vec![(1, 0)], vec![(2, 0)], vec![], vec![(4, 1)], vec![], vec![(6, 0)], vec![(5, 0)]];
        let found = classes(&contents, &[(3, 0)]);
        use Class::{Definite, Indirect, Possible, Reachable};
        let expected =
            [Definite, Indirect(0), Indirect(0), Reachable, Possible, Definite, Indirect(5)];
        assert_eq!(found, expected);
        // Found from behind: what led before hangs on what leads now.
        assert_eq!(classes(&[vec![], vec![(0, 0)]], &[]), [Indirect(1), Definite]);
    }

    #[test]
    fn an_allocator_has_addresses_near_ends_and_a_block_of_nothing_has_an_address() {
        let root = |word, only_beginnings| Root { word, only_beginnings };
        let class = |root| classify(&[0x100..0x118, 0x120..0x120], [root], &mut |_, _| ());
        assert_eq!(class(root(0x110, true))[0], Class::Definite);
        assert_eq!(class(root(0x110, false))[0], Class::Possible);
        assert_eq!(class(root(0x100, true))[0], Class::Reachable);
        assert_eq!(class(root(0x118, false))[0], Class::Definite, "that is behind it");
        assert_eq!(class(root(0x120, false))[1], Class::Reachable);
    }

    proptest! {
        /// Against the definition, by searching from every block and root anew.
        #[test]
        fn classes_are_what_paths_say(
            contents in proptest::collection::vec(proptest::collection::vec((0..8usize, 0..4u64), 0..3), 8),
            roots in proptest::collection::vec((0..8usize, 0..4u64), 0..3),
        ) {
            let found = classes(&contents, &roots);
            let reach = |from: &[Pointer], only_beginnings: bool| {
                let mut seen = [false; 8];
                let mut open = from.to_vec();
                while let Some((block, words)) = open.pop() {
                    if (words == 0 || !only_beginnings) && !std::mem::replace(&mut seen[block], true) {
                        open.extend(&contents[block]);
                    }
                }
                seen
            };
            let (surely, somehow) = (reach(&roots, true), reach(&roots, false));
            for block in 0..8 {
                let expected = match (surely[block], somehow[block]) {
                    (true, _) => matches!(found[block], Class::Reachable),
                    (false, true) => matches!(found[block], Class::Possible),
                    (false, false) => matches!(found[block], Class::Definite | Class::Indirect(_)),
                };
                prop_assert!(expected, "{block}: {found:?}");
                if let Class::Indirect(leader) = found[block] {
                    prop_assert_eq!(found[leader], Class::Definite);
                    prop_assert!(reach(&[(leader, 0)], false)[block]);
                }
                // What nothing that is lost points to must stand for itself.
                let pointed = (0..8).any(|other| other != block && !somehow[other]
                    && contents[other].iter().any(|(to, _)| *to == block));
                if !somehow[block] && !pointed {
                    prop_assert_eq!(found[block], Class::Definite);
                }
            }
        }
    }
}
