//! What the program has mapped, from the system calls that go by.
//!
//! What the kernel mapped before the first of them (the program, its loader, its stack) is not told by
//! calls: whoever knows it adds it ([`Mappings::map`]).

use std::collections::BTreeMap;
use std::ops::Range;
use syscalls::number as n;

/// Nothing but the stack that a program starts with lies above this and was not mapped by it.
const HIGH: u64 = 0x7f00_0000_0000;
/// How far below an address on that stack it is taken to reach.
pub const NEAR_STACK: u64 = 1 << 20;

/// What a system call has changed in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// So many bytes from an address on are mapped anew.
    Mapped(u64, u64),
    /// They are mapped no more.
    Unmapped(u64, u64),
    /// A mapping is somewhere else, or larger or smaller: address and length before, and then.
    Moved((u64, u64), (u64, u64)),
}

impl Change {
    /// What a system call has changed, if anything.
    #[must_use]
    pub fn of(number: u64, arguments: &[u64; 6], answer: i64) -> Option<Self> {
        if (-4095..0).contains(&answer) {
            return None;
        }
        let [address, length, new_length, ..] = *arguments;
        match number {
            n::mmap => Some(Self::Mapped(answer.cast_unsigned(), length)),
            n::munmap => Some(Self::Unmapped(address, length)),
            n::mremap => Some(Self::Moved((address, length), (answer.cast_unsigned(), new_length))),
            _ => None,
        }
    }
}

/// Ranges that were mapped, each by one call.
#[derive(Clone, Debug, Default)]
pub struct Mappings {
    all: BTreeMap<u64, u64>,
    /// Where the heap of `brk` ends, once that was told.
    heap_end: Option<u64>,
}

impl Mappings {
    /// A system call has returned.
    pub fn system_call(&mut self, number: u64, arguments: &[u64; 6], answer: i64) {
        match Change::of(number, arguments, answer) {
            Some(change) => self.apply(change),
            None if number == n::brk => self.set_heap_end(answer.cast_unsigned()),
            None => {}
        }
    }

    /// The table is changed.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Mapped(begin, length) => self.map(begin, length),
            Change::Unmapped(begin, length) => self.unmap(begin, length),
            Change::Moved((from, before), (to, after)) => {
                self.unmap(from, before);
                self.map(to, after);
            }
        }
    }

    /// A range is mapped.
    pub fn map(&mut self, begin: u64, length: u64) {
        self.unmap(begin, length);
        self.all.insert(begin, begin.saturating_add(length));
    }

    /// A range is mapped no more.
    pub fn unmap(&mut self, begin: u64, length: u64) {
        let end = begin.saturating_add(length);
        // From the last one backwards: those that begin inside, and one that reaches in.
        while let Some((&from, &to)) = self.all.range(..end).next_back()
            && to > begin
        {
            self.all.remove(&from);
            if to > end {
                self.all.insert(end, to);
            }
            if from < begin {
                self.all.insert(from, begin);
            }
        }
    }

    /// The mapping that an address is in.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<Range<u64>> {
        let (begin, end) = self.all.range(..=address).next_back()?;
        (address < *end).then_some(*begin..*end)
    }

    /// All mappings, by address.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.all.iter().map(|(begin, end)| *begin..*end)
    }

    /// The stack that an address is on, as far as it is known; nothing if it may be anywhere.
    ///
    /// A thread's stack may be as small as a few pages, with somebody else's data right below: the one
    /// that `posix_spawn` gives to its child is.
    #[must_use]
    pub fn stack_at(&self, address: u64) -> Range<u64> {
        match self.find(address) {
            Some(mapped) => mapped,
            None if address >= HIGH => address.saturating_sub(NEAR_STACK)..u64::MAX,
            None => address..address,
        }
    }

    /// The kernel answers every `brk` with where the heap ends; the first only asks.
    fn set_heap_end(&mut self, end: u64) {
        match self.heap_end.replace(end) {
            Some(old) if old < end => {
                let begin = self.find(old - 1).map_or(old, |heap| heap.start);
                self.map(begin, end - begin);
            }
            Some(old) => self.unmap(end, old - end),
            None => {}
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

    /// A call: number, arguments, answer, and what is mapped then.
    type Row = (u64, [u64; 3], i64, &'static [(u64, u64)]);

    #[test]
    fn system_calls_change_the_table() {
        let mut mappings = Mappings::default();
        let calls: [Row; 8] = [
            (n::mmap, [0, 0x3000, 3], 0x10_0000, &[(0x10_0000, 0x10_3000)]),
            (n::mmap, [0, 0x3000, 3], -12, &[(0x10_0000, 0x10_3000)]),
            (
                n::munmap,
                [0x10_1000, 0x1000, 0],
                0,
                &[(0x10_0000, 0x10_1000), (0x10_2000, 0x10_3000)],
            ),
            (
                n::mremap,
                [0x10_2000, 0x1000, 0x2000],
                0x20_0000,
                &[(0x10_0000, 0x10_1000), (0x20_0000, 0x20_2000)],
            ),
            (n::munmap, [0x10_0000, 0x200_0000, 0], 0, &[]),
            (n::brk, [0, 0, 0], 0x5000, &[]),
            (n::brk, [0x8000, 0, 0], 0x8000, &[(0x5000, 0x8000)]),
            (n::brk, [0x6000, 0, 0], 0x6000, &[(0x5000, 0x6000)]),
        ];
        for (number, [a, b, c], answer, expected) in calls {
            mappings.system_call(number, &[a, b, c, 0, 0, 0], answer);
            let mapped: Vec<_> = mappings.iter().map(|range| (range.start, range.end)).collect();
            assert_eq!(mapped, expected, "{:?}", syscalls::name(number));
        }
    }
}
