//! The chains of numbers of four bytes in memory, where a rule asks how a function's argument or
//! result came about. Pointers have theirs in [`super::cells`].

use super::chains::Node;
use super::pages::Pages;

const PAGE: u64 = 4096;
const NUMBER: u64 = 4;
const NUMBERS: usize = (PAGE / NUMBER) as usize;

/// Chains by address. Those that do not begin at a multiple of four are not kept.
#[derive(Clone, Default)]
pub struct Numbers {
    pages: Pages<Box<[Node; NUMBERS]>>,
}

fn index(address: u64) -> usize {
    (address % PAGE / NUMBER) as usize
}

impl Numbers {
    /// The chain of the number at an address.
    #[must_use]
    pub fn load(&self, address: u64) -> Node {
        let page = self.pages.get(address / PAGE).filter(|_| address.is_multiple_of(NUMBER));
        page.map(|page| page[index(address)]).unwrap_or_default()
    }

    /// A number is stored.
    pub fn store(&mut self, address: u64, node: Node) {
        if address.is_multiple_of(NUMBER) {
            let empty = || Box::new([Node::default(); NUMBERS]);
            self.pages.get_or(address / PAGE, empty)[index(address)] = node;
        }
    }

    /// Something else is stored.
    pub fn clear(&mut self, address: u64, size: u64) {
        let mut at = address & !(NUMBER - 1);
        while at < address.saturating_add(size) {
            if let Some(page) = self.pages.get_mut(at / PAGE) {
                page[index(at)] = Node::default();
            }
            at += NUMBER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::machine::chains::Chains;

    #[test]
    fn a_store_next_to_a_number_leaves_it_alone_and_one_over_it_does_not() {
        let mut numbers = Numbers::default();
        let node = Chains::made(7);
        numbers.store(4096, node);
        numbers.clear(4092, 4);
        numbers.clear(4100, 8);
        assert_eq!(numbers.load(4096), node);
        assert_eq!(numbers.load(4097), Node::default());
        numbers.clear(4090, 7);
        assert_eq!(numbers.load(4096), Node::default());
    }
}
