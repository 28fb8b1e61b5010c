//! The tables by which translated code knows the **sites**, the addresses that probed functions return
//! to: by the low bits of an address, minus the site that was learned last with these bits. What is
//! not found there is looked after by the dispatcher, so that two that share an entry cost time and
//! nothing else.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const ENTRIES: usize = 1 << 16;

/// The bits of an address that index the tables.
pub const MASK: u64 = ENTRIES as u64 - 1;

/// What happens at sites, which is why they are known apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Returns are reported.
    #[default]
    Reported,
    /// Returns go into the table of [allocations](super::screens::allocations).
    Entered,
    /// Nothing; only where the call came from goes into that table.
    Passed,
}

struct Table {
    sites: [AtomicU64; ENTRIES],
    numbers: [AtomicU32; ENTRIES],
}

static TABLES: [Table; 3] = [const {
    Table {
        sites: [const { AtomicU64::new(0) }; ENTRIES],
        numbers: [const { AtomicU32::new(0) }; ENTRIES],
    }
}; 3];

/// Where the sites of a kind lie: in the engine's image, so below 2 GiB.
pub fn table(kind: Kind) -> u64 {
    (&raw const TABLES[kind as usize].sites) as u64
}

/// Where their numbers are, as [`super::screens::allocations::Line::state`] has them.
pub fn numbers(kind: Kind) -> u64 {
    (&raw const TABLES[kind as usize].numbers) as u64
}

/// Translated code knows this site and its number from now on.
pub fn set(kind: Kind, site: u64, number: u32) {
    let (table, index) = (&TABLES[kind as usize], (site & MASK) as usize);
    table.sites[index].store(site.wrapping_neg(), Ordering::Relaxed);
    table.numbers[index].store(number << 8, Ordering::Relaxed);
}
