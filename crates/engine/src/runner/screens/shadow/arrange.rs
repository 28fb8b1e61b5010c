//! The table: private memory at a fixed place; the host writes to it by way of `/proc`. As long as
//! nothing is painted there, all of it is the kernel's one page of zeros: a test against it costs no
//! place in the processor's caches (huge pages would, and were slower).

use crate::layout::{self, NOTHING, PAINTED, SHADOW, SHADOW_BASE, USER_END, stored};
use crate::sys::{self, syscall};
use events::plan::{GRANULE, Paint};
use std::ops::Range;

const PAGE: u64 = 4096;
/// Bytes of the table from which on clearing them means giving pages back.
const LARGE: usize = 16 << 12;

/// The table.
pub struct Table;

impl Table {
    /// Maps a table in which everything passes. A forked child has a copy of its parent's.
    pub fn new() -> Result<Self, i32> {
        let bytes = SHADOW.end - SHADOW.start;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: mapped where nothing else is, or an older table that this one takes the place of.
        unsafe {
            sys::map_fixed(SHADOW.start, bytes, protection, flags, -1, 0)?;
            let (nothing, page) = (NOTHING.end - NOTHING.start, 4096);
            sys::map_fixed(NOTHING.start - page, page, libc::PROT_READ, flags, -1, 0)?;
            sys::map_fixed(NOTHING.start, nothing, libc::PROT_NONE, flags, -1, 0)?;
            leave_out_own(SHADOW_BASE)?;
            syscall!(libc::SYS_madvise, SHADOW.start, bytes, libc::MADV_DONTDUMP);
        }
        Ok(Self)
    }

    /// Gives a range its bits.
    pub fn paint(&mut self, paint: &Paint) {
        let range = paint.range.start..paint.range.end.min(USER_END);
        for part in layout::without_own(range) {
            self.paint_part(part, paint.bits);
        }
    }

    fn paint_part(&mut self, range: Range<u64>, bits: u8) {
        if range.is_empty() {
            return;
        }
        let (first, last) = (range.start / GRANULE, (range.end - 1) / GRANULE);
        let count = (last - first + 1) as usize;
        if bits == 0 && count >= LARGE {
            return self.clear(first + SHADOW_BASE, last + 1 + SHADOW_BASE);
        }
        // SAFETY: inside the table, which only the guest's own accesses through us and the host
        // look at, byte by byte.
        unsafe { std::ptr::write_bytes((first + SHADOW_BASE) as *mut u8, stored(bits), count) };
    }

    /// Gives bits to those granules of a range that have none.
    pub fn paint_blank(&mut self, range: Range<u64>, bits: u8) {
        let end = range.end.min(USER_END);
        if range.start >= end || layout::belongs_to_engine(&range) {
            return;
        }
        let (first, last) = (range.start / GRANULE, (end - 1) / GRANULE);
        // SAFETY: as in `paint`.
        let table = unsafe {
            let start = (first + SHADOW_BASE) as *mut u8;
            std::slice::from_raw_parts_mut(start, (last - first + 1) as usize)
        };
        for byte in table.iter_mut().filter(|byte| **byte == 0) {
            *byte = stored(bits);
        }
    }

    /// Clears a large part of the table: whole pages go back to the kernel.
    fn clear(&mut self, start: u64, end: u64) {
        let (first, last) = (start.next_multiple_of(PAGE), end & !(PAGE - 1));
        // SAFETY: as in `paint`.
        unsafe {
            std::ptr::write_bytes(start as *mut u8, 0, (first - start) as usize);
            syscall!(libc::SYS_madvise, first, last - first, libc::MADV_DONTNEED);
            std::ptr::write_bytes(last as *mut u8, 0, (end - last) as usize);
        }
    }

    /// The bits of a range, all together, as the plan knows them.
    pub fn bits(&self, address: u64, size: u32) -> u8 {
        let Some(last) = address.checked_add(u64::from(size.max(1)) - 1) else { return 0 };
        if last >= USER_END || layout::belongs_to_engine(&(address..last + 1)) {
            return 0;
        }
        let (first, last) = (address / GRANULE, last / GRANULE);
        // SAFETY: inside the table.
        (first..=last)
            .fold(0, |bits, granule| bits | unsafe { *((granule + SHADOW_BASE) as *const u8) })
            & !PAINTED
    }

    /// Whether any byte of a range has bits.
    pub fn has_any(&self, address: u64, bytes: u64) -> bool {
        let Some(end) = address.checked_add(bytes).filter(|end| *end <= USER_END) else {
            return true;
        };
        if layout::belongs_to_engine(&(address..end)) {
            return true;
        }
        let (first, last) = (address / GRANULE, end.div_ceil(GRANULE));
        // SAFETY: inside the table.
        let table = unsafe {
            std::slice::from_raw_parts((first + SHADOW_BASE) as *const u8, (last - first) as usize)
        };
        table.iter().any(|byte| *byte != 0)
    }
}

/// What is ours has no shadow, in this table or another that begins where `base` says: whatever tests an
/// access to it faults. The edges of what is ours, less than a page of shadow, hold nothing.
pub fn leave_out_own(base: u64) -> Result<(), i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    for own in layout::own() {
        let start = (own.start / GRANULE + base).next_multiple_of(PAGE);
        let end = (own.end / GRANULE + base) & !(PAGE - 1);
        // SAFETY: a part of the table of which nothing is in use.
        unsafe { sys::map_fixed(start, end - start, libc::PROT_NONE, flags, -1, 0)? };
    }
    Ok(())
}
