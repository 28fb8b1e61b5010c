//! A table of pages by number that is asked at every access: the last page of each of a few dozen
//! slots is remembered, also that there is none, so that most questions hash nothing.

use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Pages that are remembered, by the low bits of their number.
const NEAR: usize = 64;
/// Stands for the index of a page that is not there.
const NONE: u32 = u32::MAX;
/// A number that no page has.
const NOWHERE: u64 = u64::MAX;

/// Pages by number.
#[derive(Clone)]
pub struct Pages<T> {
    numbers: FxHashMap<u64, u32>,
    all: Vec<T>,
    /// Indices that pages have left behind.
    free: Vec<u32>,
    near: [Cell<(u64, u32)>; NEAR],
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self {
            numbers: FxHashMap::default(),
            all: Vec::new(),
            free: Vec::new(),
            near: std::array::from_fn(|_| Cell::new((NOWHERE, NONE))),
        }
    }
}

impl<T> Pages<T> {
    #[inline]
    fn index(&self, number: u64) -> u32 {
        let near = &self.near[number as usize % NEAR];
        let (known, index) = near.get();
        if known == number {
            return index;
        }
        let index = self.numbers.get(&number).copied().unwrap_or(NONE);
        near.set((number, index));
        index
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The page of a number.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        self.all.get(self.index(number) as usize)
    }

    /// The page of a number, to change.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let index = self.index(number);
        self.all.get_mut(index as usize)
    }

    /// The page of a number, made if it is not there.
    pub fn get_or(&mut self, number: u64, make: impl FnOnce() -> T) -> &mut T {
        let mut index = self.index(number);
        if index == NONE {
            index = self.insert(number, make());
        }
        &mut self.all[index as usize]
    }

    fn insert(&mut self, number: u64, page: T) -> u32 {
        let index = match self.free.pop() {
            Some(index) => {
                self.all[index as usize] = page;
                index
            }
            None => {
                self.all.push(page);
                self.all.len() as u32 - 1
            }
        };
        self.numbers.insert(number, index);
        self.near[number as usize % NEAR].set((number, index));
        index
    }

    /// Takes a page out; `empty` stands in its place.
    pub fn remove(&mut self, number: u64, empty: T) {
        let Some(index) = self.numbers.remove(&number) else { return };
        self.all[index as usize] = empty;
        self.free.push(index);
        self.near[number as usize % NEAR].set((number, NONE));
    }

    /// The numbers of all pages, in order.
    pub fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.numbers.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Numbers that share a slot of what is remembered are among them.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0u8..3, 0u64..4, 0u64..3, any::<u8>()), 1..80)) {
            let mut pages: Pages<u8> = Pages::default();
            let mut oracle = std::collections::BTreeMap::new();
            for (what, low, high, value) in steps {
                let number = high * NEAR as u64 + low;
                match what {
                    0 => {
                        pages.remove(number, 0);
                        oracle.remove(&number);
                    }
                    1 => {
                        let made = *oracle.entry(number).or_insert(value);
                        prop_assert_eq!(*pages.get_or(number, || value), made);
                    }
                    _ => prop_assert_eq!(pages.get(number), oracle.get(&number)),
                }
                prop_assert_eq!(pages.len(), oracle.len());
                prop_assert_eq!(pages.numbers(), oracle.keys().copied().collect::<Vec<_>>());
            }
        }
    }
}
