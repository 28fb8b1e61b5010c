//! Where a value came from, by copies alone: the **value propagation chain**.
//!
//! Registers and words of memory carry the [`Node`] of their value. A value that an instruction
//! makes (a constant, arithmetic, a call's result) has a node that is just the instruction's place.
//! A store adds one hop; loads, moves between registers and saves of registers add none, so a chain
//! is the list of variables that the value went through.

use base::{Address, Position, Tick};
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
    /// When it was stored, where ticks are counted.
    pub when: Option<Stamp>,
}

/// When something happened in the stream: the position, and the thread as the kernel numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The position.
    pub position: Position,
    /// The thread.
    pub thread: u32,
}

/// From a hop on, values are stored at this tick, by this thread.
#[derive(Clone, Copy)]
struct Mark {
    hop: u32,
    at: (Tick, u32),
}

/// All hops of a process.
#[derive(Clone, Default)]
pub struct Chains {
    places: Vec<u64>,
    numbers: FxHashMap<u64, u32>,
    hops: Vec<Hop>,
    /// Hops dropped from the front.
    dropped: u32,
    /// When hops were made: one for the first at each instant.
    marks: Vec<Mark>,
    /// The tick that it is and the thread that runs, where ticks are counted.
    pub now: Option<(Tick, u32)>,
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
            let gone = self.marks.partition_point(|mark| mark.hop <= self.dropped);
            self.marks.drain(..gone.saturating_sub(1));
        }
        self.hops.push(Hop { place, from });
        if let Some(at) = self.now
            && self.marks.last().is_none_or(|last| last.at != at)
        {
            self.marks.push(Mark { hop: self.dropped + self.hops.len() as u32, at });
        }
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
        self.walk(node, &mut |_, _| ()) == BEFORE
    }

    /// The links from the newest to where the value was made.
    #[must_use]
    pub fn links(&self, node: Node) -> Vec<Link> {
        let mut links = Vec::new();
        let end = self.walk(node, &mut |hop, pc| {
            links.push(Link { pc, made: false, when: self.made_at(hop, pc) });
        });
        if end.0 & MADE != 0 && links.len() < LONGEST {
            let pc = self.places.get((end.0 & !MADE) as usize);
            links.extend(pc.map(|&pc| Link { pc, made: true, when: None }));
        }
        links
    }

    /// When a hop was made.
    fn made_at(&self, hop: u32, pc: u64) -> Option<Stamp> {
        let after = self.marks.partition_point(|mark| mark.hop <= hop);
        let (tick, thread) = self.marks.get(after.checked_sub(1)?)?.at;
        Some(Stamp { position: Position { tick, pc: Address(pc) }, thread })
    }

    /// Goes through the stores of a chain, newest first; the node that it ends with.
    fn walk(&self, node: Node, stored: &mut impl FnMut(u32, u64)) -> Node {
        let mut at = node;
        for _ in 0..LONGEST {
            let index = at.0.checked_sub(1 + self.dropped).filter(|_| at.0 & MADE == 0);
            let Some(hop) = index.and_then(|index| self.hops.get(index as usize)) else { break };
            stored(at.0, self.places[hop.place as usize]);
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
        let link = |pc, made| Link { pc, made, when: None };
        assert_eq!(chains.links(third), [link(30, false), link(20, false), link(10, true)]);
        assert_eq!(chains.links(Node::default()), []);
    }

    #[test]
    fn a_copy_knows_when_it_was_made() {
        let mut chains = Chains::default();
        let place = chains.place(10);
        let at = |tick, thread| Some((Tick(tick), thread));
        let mut node = chains.stored(place, Node::default());
        for now in [at(5, 1), at(5, 1), at(7, 2), at(9, 1)] {
            chains.now = now;
            node = chains.stored(place, node);
        }
        let when = |link: Link| link.when.map(|when| (when.position.tick, when.thread));
        let times: Vec<_> = chains.links(node).into_iter().map(when).collect();
        assert_eq!(times, [at(9, 1), at(7, 2), at(5, 1), at(5, 1), None]);
        assert_eq!(chains.marks.len(), 3);
    }
}
