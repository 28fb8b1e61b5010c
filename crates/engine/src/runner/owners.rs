//! **Owners**: which block of the heap memory belongs to, as a small number, for translated code to
//! compare. An address that is worked out from a pointer into one block must not lie in another, be
//! the other alive or not; the [shadow](super::screen) shows nothing there.
//!
//! The table is indexed by some bits of an address, so that it lies below 2 GiB and is reached without
//! a register: a number stands for sixteen bytes, and memory 256 MiB apart shares its numbers. Blocks
//! share them too. So translated code ([`super::translate::lower`]) finds that two numbers differ, and the
//! [heap](super::heap), which knows every block, says whether the blocks do. Zero is no block's.

use super::layout::OWNERS;
use super::sys;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bits of an address that index the table. The highest tells the heap behind the program from what is
/// mapped.
const BITS: u64 = 0x0fff_fff0 | 1 << 41;

const UNIT: u64 = 16;
/// Larger blocks have no number: it would be that of much else.
const LARGEST: u64 = 64 << 20;

/// Whether nobody has to be told any more.
static SETTLED: AtomicBool = AtomicBool::new(false);

/// What translated code indexes the table by: nothing while a thread is inside an allocator.
pub fn mask(allocating: bool) -> u64 {
    if allocating || SETTLED.load(Ordering::Relaxed) { 0 } else { BITS }
}

/// A process is suspicious as a whole, so that one suspicion is enough.
pub fn settle(settled: bool) {
    SETTLED.store(settled, Ordering::Relaxed);
}

/// Maps a table in which nothing belongs to anybody.
pub fn map() -> Result<(), i32> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the range is the engine's own and holds nothing else.
    unsafe { sys::map_fixed(OWNERS.start, OWNERS.end - OWNERS.start, protection, flags, -1, 0) }
}

/// A block is there; its number is none of its neighbours'.
pub fn claim(block: &Range<u64>, count: u64) {
    let beside = [1, UNIT + 1, 2 * UNIT + 1].map(|by| *entry(block.start.wrapping_sub(by)));
    let behind = [0, UNIT, 2 * UNIT].map(|by| *entry(block.end.wrapping_add(by)));
    let taken = |number: &u8| beside.contains(number) || behind.contains(number);
    let number = (0..8).map(|by| ((count + by) % 255 + 1) as u8).find(|number| !taken(number));
    paint(block, number.unwrap_or(0));
}

/// A block is gone.
pub fn release(block: &Range<u64>) {
    paint(block, 0);
}

fn paint(block: &Range<u64>, number: u8) {
    if block.is_empty() || block.end - block.start > LARGEST {
        return;
    }
    for unit in block.start / UNIT..=(block.end - 1) / UNIT {
        let entry = entry(unit * UNIT);
        // The first is what everything has while the mask is empty.
        if !std::ptr::eq(entry, table()) {
            *entry = number;
        }
    }
}

fn table() -> *const u8 {
    OWNERS.start as *const u8
}

fn entry(address: u64) -> &'static mut u8 {
    let index = (address & BITS) >> 4 & 0xff_ffff | (address >> 41 & 1) << 24;
    // SAFETY: inside the table, of which whoever has the baton looks at a byte at a time.
    unsafe { &mut *((OWNERS.start + index) as *mut u8) }
}

/// For every pair of numbers, that of a pointer in the high byte and that of an address made from it in the
/// low one: zero if they may stand for one block.
static UNLIKE: [u8; 1 << 16] = {
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
pub fn unlike() -> u64 {
    (&raw const UNLIKE) as u64
}
