//! The **contracts** of the memory and string functions of C: which bytes each may read and write, given its
//! arguments and what stands in memory when it is called.
//!
//! How such a function reads is its own affair: it takes whole vectors, past the end of a string and
//! sometimes before its beginning. So whoever judges accesses judges these functions by their contracts
//! ([`touched`]) and leaves what happens inside alone. Functions that are built on them (`puts`, `strdup`,
//! `fread` …) need no contract, as the calls that they make are judged; nor do those that go byte by byte.
//!
//! A contract is one line of [`table`]. Nothing here touches memory but through [`Memory`]; arguments are a
//! program's doing and may be anything.
#![forbid(unsafe_code)]

mod scan;
mod table;

pub use table::all;

use scan::Scan;
use table::{Extent, Part};

/// Memory of the program that makes the call.
pub trait Memory {
    /// Copies what is at `address` to `out`, as far as it can be read: how many bytes.
    fn read(&self, address: u64, out: &mut [u8]) -> usize;
}

/// What is done to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    /// They must be there, and are read.
    Reads,
    /// They must be there, and are written.
    Writes,
    /// What they are decides what the function does or returns.
    Decides,
}

impl Deed {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Reads, Self::Writes, Self::Decides];
}

/// Bytes that a call touches. Where a function stops early these are the bytes up to there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Touched {
    /// The argument that leads there, counted from 0.
    pub argument: u8,
    /// What is done to them.
    pub deed: Deed,
    /// Where they begin.
    pub address: u64,
    /// How many they are; never 0.
    pub length: u64,
}

/// What a function promises.
#[derive(Clone, Copy, Debug)]
pub struct Contract {
    /// What it is called.
    pub name: &'static str,
    /// Bytes of a character.
    width: u64,
    parts: &'static [Part],
}

/// The contract of the function of a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Contract> {
    let at = all().binary_search_by(|contract| contract.name.cmp(name)).ok()?;
    Some(&all()[at])
}

impl Contract {
    /// Appends what a call with these arguments touches.
    pub fn touched(&self, arguments: [u64; 6], memory: &dyn Memory, out: &mut Vec<Touched>) {
        for part in self.parts {
            let scan = Scan { memory, width: self.width, arguments: &arguments };
            let (skipped, characters) = extent(&scan, part);
            let argument = part.argument;
            let start = arguments[usize::from(argument)];
            let address = start.wrapping_add(skipped.wrapping_mul(self.width));
            let length = characters.saturating_mul(self.width);
            if length > 0 {
                let touch = |deed| Touched { argument, deed, address, length };
                out.extend(part.deeds.iter().copied().map(touch));
            }
        }
    }
}

/// A byte that every call with anything to do touches, in terms of its arguments: the last one where these say
/// how many there are, else the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The argument that leads there.
    pub argument: u8,
    /// The argument that counts characters, if one does.
    pub count: Option<u8>,
    /// Bytes of a character.
    pub width: u8,
}

impl Contract {
    /// The arguments that lead somewhere or say how many there are, as a set of bits.
    #[must_use]
    pub fn steering(&self) -> u8 {
        let bit = |argument: u8| 1 << argument;
        let of = |part: &Part| bit(part.argument) | part.extent.count().map_or(0, bit);
        self.parts.iter().fold(0, |all, part| all | of(part))
    }

    /// The arguments that say how many characters there are.
    pub fn counts(&self) -> impl Iterator<Item = u8> {
        self.parts.iter().filter_map(|part| part.extent.count())
    }

    /// The bytes that tell most about a call without looking at what stands in memory.
    pub fn probes(&self) -> impl Iterator<Item = Probe> {
        let touches = |part: &&Part| part.deeds.iter().any(|deed| *deed != Deed::Decides);
        self.parts.iter().filter(touches).map(|part| Probe {
            argument: part.argument,
            count: match part.extent {
                Extent::Count(count) => Some(count),
                _ => None,
            },
            width: self.width as u8,
        })
    }
}

/// How many characters a part begins behind its argument, and how many it has.
fn extent(scan: &Scan<'_>, part: &Part) -> (u64, u64) {
    let at = |argument: u8| scan.arguments[usize::from(argument)];
    let own = at(part.argument);
    let found = |outcome: scan::Until| outcome.characters;
    match part.extent {
        Extent::Count(count) => (0, at(count)),
        Extent::Text => (0, found(scan.text(own, u64::MAX))),
        Extent::TextAtMost(most) => (0, found(scan.text(own, at(most)))),
        Extent::TextOf(other) => (0, found(scan.text(at(other), u64::MAX))),
        Extent::Appended { text, most } => {
            let before = scan.text(own, u64::MAX).without_end();
            let most = most.map_or(u64::MAX, at);
            // A terminator follows, also where the text has more than that.
            (before, scan.text(at(text), most).without_end().saturating_add(1))
        }
        Extent::UntilByte(byte, most) => {
            let wanted = scan.character(at(byte));
            (0, found(scan.until(own, most.map_or(u64::MAX, at), |one| one == wanted)))
        }
        Extent::UntilByteOrEnd(byte) => {
            let wanted = scan.character(at(byte));
            (0, found(scan.until(own, u64::MAX, |one| one == wanted || one == 0)))
        }
        Extent::FromByteBack(byte, count) => scan.back(own, at(count), scan.character(at(byte))),
        Extent::Compared { other, most, ends } => {
            let most = most.map_or(u64::MAX, at);
            (0, scan.compared(own, at(other), most, ends))
        }
        Extent::SpanOf { set, inside } => (0, scan.span(own, at(set), inside)),
        Extent::Search(needle) => (0, scan.search(own, at(needle))),
    }
}

#[cfg(test)]
mod tests;
