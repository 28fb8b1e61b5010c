//! Addresses as a file states them, kept apart from addresses of the running program.

use base::{Address, Range};
use std::fmt;

/// An address as written in an ELF file, before the loader has chosen where the file goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileAddress(pub u64);

impl FileAddress {
    /// Where this address is in a program that loaded the file with `bias`.
    #[must_use]
    pub fn loaded(self, bias: u64) -> Address {
        Address(self.0.wrapping_add(bias))
    }

    /// The address of the file that the program's `address` came from.
    #[must_use]
    pub fn unloaded(address: Address, bias: u64) -> Self {
        Self(address.0.wrapping_sub(bias))
    }
}

/// Where a stretch of a file is in a program that loaded the file with `bias`.
pub(crate) fn loaded_range((start, end): (u64, u64), bias: u64) -> Range {
    Range { start: FileAddress(start).loaded(bias), end: FileAddress(end).loaded(bias) }
}

impl fmt::Display for FileAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#x}", self.0)
    }
}

impl fmt::Debug for FileAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "file:{:#x}", self.0)
    }
}
