//! Where a value came from, by copies alone: the **value propagation chain**.
//!
//! Registers and words of memory carry the [`Node`] of their value. A value that an instruction
//! makes (a constant, arithmetic, a call's result) has a node that is just the instruction's place.
//! A store adds one hop; loads, moves between registers and saves of registers add none, so a chain
//! is the list of variables that the value went through.

use rustc_hash::FxHashMap;

/// A value's origin: nothing, the place that made it, or a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node(u32);

const MADE: u32 = 1 << 31;
/// The end of a chain that goes back to before a window: no place has this number.
const BEFORE: Node = Node(u32::MAX);
/// Hops kept. A program that copies without end loses its oldest history.
const MOST_HOPS: usize = 1 << 26;
/// A chain longer than this is cut.
const LONGEST: usize = 256;

#[derive(Clone, Copy)]
struct Hop {
    place: u32,
    from: Node,
}

/// One element of a chain: the address of an instruction, and whether it copied or made the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The instruction.
    pub pc: u64,
    /// Whether the value was made there; else it was stored there.
    pub made: bool,
}

/// All hops of a process.
#[derive(Clone, Default)]
pub struct Chains {
    places: Vec<u64>,
    numbers: FxHashMap<u64, u32>,
    hops: Vec<Hop>,
    /// Hops dropped from the front.
    dropped: u32,
}

impl Chains {
    /// A number for the address of an instruction.
    pub fn place(&mut self, pc: u64) -> u32 {
        *self.numbers.entry(pc).or_insert_with(|| {
            self.places.push(pc);
            self.places.len() as u32 - 1
        })
    }

    /// The node of a value that the instruction at a place makes.
    #[must_use]
    pub fn made(place: u32) -> Node {
        Node(MADE | place)
    }

    /// The node of a value that the instruction at a place stores.
    pub fn stored(&mut self, place: u32, from: Node) -> Node {
        if self.hops.len() >= MOST_HOPS {
            let half = self.hops.len() / 2;
            self.hops.drain(..half);
            self.dropped += half as u32;
        }
        self.hops.push(Hop { place, from });
        // Numbers begin at 1; those of dropped hops lead nowhere.
        match self.dropped.checked_add(self.hops.len() as u32) {
            Some(number) if number < MADE => Node(number),
            _ => Node(0),
        }
    }

    /// The node of a value that was there when a window began.
    #[must_use]
    pub fn before() -> Node {
        BEFORE
    }

    /// Whether a chain goes back to before the window.
    #[must_use]
    pub fn is_cut(&self, node: Node) -> bool {
        self.walk(node, &mut |_| ()) == BEFORE
    }

    /// The links from the newest to where the value was made.
    #[must_use]
    pub fn links(&self, node: Node) -> Vec<Link> {
        let mut links = Vec::new();
        let end = self.walk(node, &mut |pc| links.push(Link { pc, made: false }));
        if end.0 & MADE != 0 && links.len() < LONGEST {
            let pc = self.places.get((end.0 & !MADE) as usize);
            links.extend(pc.map(|&pc| Link { pc, made: true }));
        }
        links
    }

    /// Goes through the stores of a chain, newest first; the node that it ends with.
    fn walk(&self, node: Node, stored: &mut impl FnMut(u64)) -> Node {
        let mut at = node;
        for _ in 0..LONGEST {
            let index = at.0.checked_sub(1 + self.dropped).filter(|_| at.0 & MADE == 0);
            let Some(hop) = index.and_then(|index| self.hops.get(index as usize)) else { break };
            stored(self.places[hop.place as usize]);
            at = hop.from;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_leads_back_to_where_the_value_was_made() {
        let mut chains = Chains::default();
        let (one, two, three) = (chains.place(10), chains.place(20), chains.place(30));
        assert_eq!(chains.place(10), one);
        let made = Chains::made(one);
        let second = chains.stored(two, made);
        let third = chains.stored(three, second);
        let link = |pc, made| Link { pc, made };
        assert_eq!(chains.links(third), [link(30, false), link(20, false), link(10, true)]);
        assert_eq!(chains.links(Node::default()), []);
    }
}
