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

    /// The text that an address really is, if all of it is text: a pointer that was overwritten. Fewer than five
    /// characters may be a number by chance, and where the kernel puts programs addresses look like text.
    #[must_use]
    pub fn as_text(self) -> Option<String> {
        const SHORTEST: usize = 5;
        const PROGRAMS: std::ops::Range<u64> = 0x5500_0000_0000..0x5700_0000_0000;
        if PROGRAMS.contains(&self.0) {
            return None;
        }
        let bytes = self.0.to_le_bytes();
        let length = bytes.iter().rposition(|byte| *byte != 0)? + 1;
        let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        let text = &bytes[..length];
        let is_text = length >= SHORTEST && text.iter().all(plain);
        is_text.then(|| String::from_utf8_lossy(text).into_owned())
    }

    /// The address for a reader, with the text that it is, if it is one.
    #[must_use]
    pub fn with_text(self) -> String {
        match self.as_text() {
            Some(text) => format!("{self} (the text {text:?})"),
            None => self.to_string(),
        }
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
    fn addresses_that_are_text_are_shown_as_text() {
        let rows = [
            (0x2c32_342c_3134_2c30, "0x2c32342c31342c30 (the text \"0,41,42,\")"),
            (0x4141_4141_4141, "0x414141414141 (the text \"AAAAAA\")"),
            (0x0a6f_6c6c_6568, "0xa6f6c6c6568 (the text \"hello\\n\")"),
            (0x5555_5555_92a0, "0x5555555592a0"),
            (0x5555_5555_6020, "0x555555556020"),
            (0x7fff_ffff_e300, "0x7fffffffe300"),
            (0x4142_4344, "0x41424344"),
            (0, "0x0"),
        ];
        for (address, expected) in rows {
            assert_eq!(Address(address).with_text(), expected);
        }
    }

    #[test]
    fn neighbours_do_not_overlap() {
        let left = Range::new(0, 8);
        assert!(!left.overlaps(&Range::new(8, 8)));
        assert!(left.overlaps(&Range::new(7, 1)));
    }
}
