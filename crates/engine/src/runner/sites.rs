//! The tables by which translated code knows the **sites**, the addresses that probed functions return
//! to: by the low bits of an address, minus the site that was learned last with these bits. What is
//! not found there is looked after by the dispatcher, so that two that share an entry cost time and
//! nothing else.
//!
//! Functions whose calls go into a [ledger](super::ledger) have a table of their own, with the numbers of
//! sites beside it: a site of theirs is translated otherwise than one whose returns are told.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const ENTRIES: usize = 1 << 16;

/// The bits of an address that index the tables.
pub const MASK: u64 = ENTRIES as u64 - 1;

static TOLD: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];
static QUIET: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];
static NUMBERS: [AtomicU32; ENTRIES] = [const { AtomicU32::new(0) }; ENTRIES];

/// Where the table of sites lies: in the engine's image, so below 2 GiB.
pub fn told() -> u64 {
    (&raw const TOLD) as u64
}

/// The same for sites of functions whose calls are not told.
pub fn quiet() -> u64 {
    (&raw const QUIET) as u64
}

/// Where their numbers are.
pub fn numbers() -> u64 {
    (&raw const NUMBERS) as u64
}

/// Translated code knows this site from now on.
pub fn tell(site: u64) {
    TOLD[(site & MASK) as usize].store(site.wrapping_neg(), Ordering::Relaxed);
}

/// Translated code knows this site and its number from now on.
pub fn number(site: u64, number: u32) {
    QUIET[(site & MASK) as usize].store(site.wrapping_neg(), Ordering::Relaxed);
    NUMBERS[(site & MASK) as usize].store(number, Ordering::Relaxed);
}
