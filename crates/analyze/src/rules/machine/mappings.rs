//! What the program has mapped, to tell how far the stacks of its threads reach.
//!
//! A thread's stack may be as small as a few pages, with somebody else's data right below: the one that
//! `posix_spawn` gives to its child is.

use super::NEAR_STACK;
use std::collections::BTreeMap;
use std::ops::Range;

/// Nothing but the stack that a program starts with lies above this and was not mapped by it.
const HIGH: u64 = 0x7f00_0000_0000;

/// Ranges that were mapped, each by one call.
#[derive(Clone, Default)]
pub struct Mappings(BTreeMap<u64, u64>);

impl Mappings {
    /// A range is mapped.
    pub fn map(&mut self, begin: u64, length: u64) {
        self.unmap(begin, length);
        self.0.insert(begin, begin.saturating_add(length));
    }

    /// A range is mapped no more.
    pub fn unmap(&mut self, begin: u64, length: u64) {
        let end = begin.saturating_add(length);
        // From the last one backwards: those that begin inside, and one that reaches in.
        while let Some((&from, &to)) = self.0.range(..end).next_back()
            && to > begin
        {
            self.0.remove(&from);
            if to > end {
                self.0.insert(end, to);
            }
            if from < begin {
                self.0.insert(from, begin);
            }
        }
    }

    /// The stack that an address is on, as far as it is known; nothing if it may be anywhere.
    #[must_use]
    pub fn stack_at(&self, address: u64) -> Range<u64> {
        let mapped = self.0.range(..=address).next_back().filter(|(_, end)| address < **end);
        match mapped {
            Some((begin, end)) => *begin..*end,
            None if address >= HIGH => address.saturating_sub(NEAR_STACK)..u64::MAX,
            None => address..address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The oracle keeps for every address the call that mapped it.
        #[test]
        fn a_mapping_is_what_is_left_of_one_call(
            steps in prop::collection::vec((0u64..60, 1u64..20, any::<bool>()), 1..40),
        ) {
            let mut mappings = Mappings::default();
            let mut owner = [None; 80];
            for (call, (begin, length, maps)) in steps.into_iter().enumerate() {
                match maps {
                    true => mappings.map(begin, length),
                    false => mappings.unmap(begin, length),
                }
                (begin..begin + length).for_each(|at| owner[at as usize] = maps.then_some(call));
                for at in 0..80u64 {
                    let same = |to: u64| owner[to as usize] == owner[at as usize];
                    let expected = match owner[at as usize] {
                        None => at..at,
                        Some(_) => {
                            let begin = (0..=at).rev().take_while(|to| same(*to)).last();
                            let end = (at..80).take_while(|to| same(*to)).last();
                            begin.expect("itself")..end.expect("itself") + 1
                        }
                    };
                    prop_assert_eq!(mappings.stack_at(at), expected);
                }
            }
        }
    }

    #[test]
    fn the_first_stack_is_nobodys_mapping() {
        let mut mappings = Mappings::default();
        mappings.map(0x7fff_0000_0000, 0x8000);
        assert_eq!(mappings.stack_at(0x7fff_0000_7000), 0x7fff_0000_0000..0x7fff_0000_8000);
        let top = 0x7fff_ffff_e000;
        assert_eq!(mappings.stack_at(top), top - NEAR_STACK..u64::MAX);
        assert!(mappings.stack_at(0x5555_0000_0000).is_empty(), "a stack in the heap");
    }
}
