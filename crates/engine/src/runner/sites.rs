//! The table by which translated code knows the **sites**, the addresses that probed functions return
//! to: by the low bits of an address, minus the site that was learned last with these bits. What is
//! not found there is looked after by the dispatcher, so that two that share an entry cost time and
//! nothing else.

use std::sync::atomic::{AtomicU64, Ordering};

const ENTRIES: usize = 1 << 16;

/// The bits of an address that index the table.
pub const MASK: u64 = ENTRIES as u64 - 1;

static TABLE: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];

/// Where the table lies: in the engine's image, so below 2 GiB.
pub fn table() -> u64 {
    (&raw const TABLE) as u64
}

/// Translated code knows this site from now on.
pub fn set(site: u64) {
    TABLE[(site & MASK) as usize].store(site.wrapping_neg(), Ordering::Relaxed);
}
