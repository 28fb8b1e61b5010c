//! What carries the value, and which node made it so.

use crate::dependence::wanted::Wanted;
use crate::semantics::Parts;
use crate::slice::graph::{Because, Kind};
use crate::slice::wanters::Reasons;
use rustc_hash::FxHashMap;

/// Stands for a node that is not kept.
pub const NO_NODE: u32 = u32::MAX;

/// Marked register parts of one thread.
#[derive(Clone, Default)]
pub struct Registers {
    marked: Parts,
    makers: FxHashMap<u8, u32>,
}

impl Registers {
    /// All that are marked.
    pub fn marked(&self) -> Parts {
        self.marked
    }

    /// Whether any of these is marked.
    #[inline]
    pub fn meets(&self, parts: &Parts) -> bool {
        self.marked.meets(parts)
    }

    /// Takes marks off.
    pub fn clear(&mut self, parts: Parts) {
        self.marked = self.marked.without(&parts);
    }

    /// A node makes these.
    pub fn set(&mut self, parts: Parts, node: u32) {
        self.marked |= parts;
        self.makers.extend(parts.iter().map(|part| (part, node)));
    }

    /// Who made those of these that are marked.
    pub fn tell(&self, parts: Parts, kind: Kind, found: &mut Reasons) {
        for part in (self.marked & parts).iter() {
            let node = self.makers.get(&part).copied().unwrap_or(NO_NODE);
            found.add(node, kind, Because::Parts(Parts::numbered(part)));
        }
    }

    /// Puts back what was there of some parts before.
    pub fn put_back(&mut self, parts: Parts, before: &Self) {
        self.clear(parts);
        self.marked |= before.marked & parts;
        self.makers.extend(&before.makers);
    }

    /// A copy of what there is of some parts.
    pub fn part(&self, parts: Parts) -> Self {
        let marked = self.marked & parts;
        let makers = marked.iter().filter_map(|part| Some((part, *self.makers.get(&part)?)));
        Self { marked, makers: makers.collect() }
    }
}

/// Marked bytes.
#[derive(Default)]
pub struct Memory {
    marked: Wanted,
    makers: FxHashMap<u64, u32>,
}

impl Memory {
    /// Whether any of these bytes is marked.
    #[inline]
    pub fn has(&mut self, address: u64, bytes: u64) -> bool {
        self.marked.has(address, bytes)
    }

    /// Which of up to 64 bytes are marked.
    pub fn mask(&mut self, address: u64, bytes: u64) -> u64 {
        self.marked.some(address, bytes)
    }

    /// Takes marks off.
    pub fn clear(&mut self, address: u64, bytes: u64) {
        if bytes <= 64 {
            self.marked.take(address, bytes);
        } else {
            self.marked.take_range(address, bytes);
        }
    }

    /// A node makes those of some bytes whose bit is set.
    pub fn set(&mut self, address: u64, which: u64, node: u32, keep: bool) {
        self.marked.add_some(address, which);
        if keep {
            let bytes = (0..64).filter(|byte| which >> byte & 1 == 1);
            self.makers.extend(bytes.map(|byte| (address.wrapping_add(byte), node)));
        }
    }

    /// Who made those of some bytes whose bit is set.
    pub fn tell(&self, address: u64, which: u64, found: &mut Reasons) {
        for byte in (0..64).filter(|byte| which >> byte & 1 == 1) {
            let address = address.wrapping_add(byte);
            let node = self.makers.get(&address).copied().unwrap_or(NO_NODE);
            found.add(node, Kind::Value, Because::Memory { address, bytes: 1 });
        }
    }
}
