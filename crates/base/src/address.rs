//! Guest addresses, and half-open ranges of them, as types of their own.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An address in the guest program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(pub u64);

impl Address {
    /// Reads an address as it is written: `0x` and hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Self)
    }

    /// The address `bytes` further on, wrapping as the processor does.
    #[must_use]
    pub fn offset(self, bytes: i64) -> Self {
        Self(self.0.wrapping_add_signed(bytes))
    }

    /// The start of the 4 KiB page that holds this address.
    #[must_use]
    pub fn page(self) -> Self {
        Self(self.0 & !0xfff)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#x}", self.0)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The addresses from `start` up to but not including `end`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Range {
    /// First address inside.
    pub start: Address,
    /// First address past the end.
    pub end: Address,
}

impl Range {
    /// The range of `length` bytes at `start`; it ends at the top of memory at the latest.
    #[must_use]
    pub fn new(start: u64, length: u64) -> Self {
        Self { start: Address(start), end: Address(start.saturating_add(length)) }
    }

    /// Whether `address` lies inside.
    #[must_use]
    pub fn contains(&self, address: Address) -> bool {
        self.start <= address && address < self.end
    }

    /// Whether the two ranges share a byte.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_first_byte_and_not_its_end() {
        let range = Range::new(0x1000, 0x10);
        assert!(range.contains(Address(0x1000)) && range.contains(Address(0x100f)));
        assert!(!range.contains(Address(0x1010)) && !range.contains(Address(0xfff)));
    }

    #[test]
    fn neighbours_do_not_overlap() {
        let left = Range::new(0, 8);
        assert!(!left.overlaps(&Range::new(8, 8)));
        assert!(left.overlaps(&Range::new(7, 1)));
    }
}
