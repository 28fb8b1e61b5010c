//! The table of memory tags.
//!
//! It is indexed by some bits of an address, so that it lies below 2 GiB and is reached without a register:
//! a tag stands for sixteen bytes, and memory 256 MiB apart shares its tags. Blocks share them too. Zero is
//! no block's.

use crate::layout::TAGS;
use crate::sys;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Bits of an address that index the table. The highest tells the heap behind the program from what is
/// mapped.
const BITS: u64 = 0x0fff_fff0 | 1 << 41;

const UNIT: u64 = 16;
/// Larger blocks have no tag: it would be that of much else.
const LARGEST: u64 = 64 << 20;

/// Set after the first report; disables further comparisons.
static SETTLED: AtomicBool = AtomicBool::new(false);

/// What translated code indexes the table by: nothing while a thread is inside an allocator.
pub fn mask(allocating: bool) -> u64 {
    if allocating || SETTLED.load(Ordering::Relaxed) { 0 } else { BITS }
}

/// One suspicion is enough: a process is suspicious as a whole.
pub fn settle(settled: bool) {
    SETTLED.store(settled, Ordering::Relaxed);
}

/// Maps a table without tags.
pub fn map() -> Result<(), i32> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the range is the engine's own and holds nothing else.
    unsafe { sys::map_fixed(TAGS.start, TAGS.end - TAGS.start, protection, flags, -1, 0) }
}

/// A block is there; its tag is none of its neighbours'.
pub fn tag(block: &Range<u64>, count: u64) {
    let beside = [1, UNIT + 1, 2 * UNIT + 1].map(|by| get(block.start.wrapping_sub(by)));
    let behind = [0, UNIT, 2 * UNIT].map(|by| get(block.end.wrapping_add(by)));
    let taken = |number: &u8| beside.contains(number) || behind.contains(number);
    let number = (0..8).map(|by| ((count + by) % 255 + 1) as u8).find(|number| !taken(number));
    set(block, number.unwrap_or(0));
}

/// A block is gone.
pub fn untag(block: &Range<u64>) {
    set(block, 0);
}

fn set(block: &Range<u64>, tag: u8) {
    if block.is_empty() || block.end - block.start > LARGEST {
        return;
    }
    for unit in block.start / UNIT..=(block.end - 1) / UNIT {
        let entry = entry(unit * UNIT);
        // The first is what everything has while the mask is empty.
        if !std::ptr::eq(entry, table()) {
            entry.store(tag, Ordering::Relaxed);
        }
    }
}

fn table() -> *const AtomicU8 {
    TAGS.start as *const AtomicU8
}

fn get(address: u64) -> u8 {
    entry(address).load(Ordering::Relaxed)
}

fn entry(address: u64) -> &'static AtomicU8 {
    let index = (address & BITS) >> 4 & 0xff_ffff | (address >> 41 & 1) << 24;
    // SAFETY: inside the table, which is mapped before any block has a tag and stays so.
    unsafe { &*((TAGS.start + index) as *const AtomicU8) }
}

/// For every pair of tags, that of a pointer in the high byte and that of an address made from it in the
/// low one: zero if they may stand for one block.
static DIFFER: [u8; 1 << 16] = {
    let mut table = [0; 1 << 16];
    let mut pair = 0;
    while pair < 1 << 16 {
        let (from, to) = (pair >> 8, pair & 0xff);
        if from != 0 && to != 0 && from != to {
            table[pair] = 1;
        }
        pair += 1;
    }
    table
};

/// Where that table lies: in the engine's image, so below 2 GiB.
pub fn differ() -> u64 {
    (&raw const DIFFER) as u64
}
