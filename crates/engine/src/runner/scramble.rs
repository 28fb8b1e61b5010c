//! **Scrambled** replays: whether it matters what memory holds that nobody has written.
//!
//! A process is replayed with other contents in the blocks that allocators hand out and in the frames that
//! functions make ([`SCRAMBLED`]). A program that depends on nothing but what was written does the same as
//! before, whatever it copies about; so whatever it does differently is a suspicion: another system
//! call, another number of ticks, a fault. That takes as long as a replay, as nothing is followed through
//! registers and memory; values carry their mark themselves. Where the outcome would be the same by
//! chance, as in most comparisons with a constant, the mark itself is looked for: in what translated code
//! compares ([`super::translate::lower`]) and in what is handed to the kernel.
//!
//! This is an accelerator: a replay with full propagation decides what is reported.

use super::address_map::AddressMap;
use super::buffers;
use super::engine::Engine;
use super::guest;
use super::heap::Look;
use super::memory::Mapping;
use super::thread::Thread;
use events::plan::{SCRAMBLED, UNWRITTEN};
use std::ops::Range;

/// Bytes of a block that are scrambled; the kernel would have to provide all of a large one.
const MOST: u64 = 1 << 20;
/// The bytes of a block by which glibc knows that it is free already. They may be left over from an earlier
/// life of the block, and then `free` looks for it among the free ones.
const KEY: Range<u64> = 8..16;
/// Suspicions that are told of one place.
const MOST_TOLD: u32 = 4;
/// Bytes that are looked at at a time.
const PIECE: usize = 4096;

/// What has been told.
#[derive(Default)]
pub struct Scramble {
    told: AddressMap<u32>,
}

/// Whether bytes show the mark, from wherever they were copied.
fn shows(bytes: &[u8]) -> bool {
    let turned = |by: u32| SCRAMBLED.rotate_right(8 * by).to_le_bytes();
    let marks = [0, 1, 2, 3].map(turned);
    bytes.windows(4).any(|window| marks.iter().any(|mark| mark == window))
}

impl Engine {
    /// A block has been handed out, of which somebody has written the first bytes.
    pub fn scramble(&mut self, block: &Range<u64>, written: u64) {
        let start = block.start.saturating_add(written);
        let range = start..block.end.min(start.saturating_add(MOST));
        if range.is_empty() || !self.is_plain(&range) {
            return;
        }
        // SAFETY: the guest's own private memory, which it can write and nobody else uses now: whoever
        // could change that waits for the baton.
        let bytes = unsafe {
            let length = (range.end - range.start) as usize;
            std::slice::from_raw_parts_mut(range.start as *mut u8, length)
        };
        let inside = |at: u64| at.saturating_sub(written).min(bytes.len() as u64) as usize;
        let key = inside(KEY.start)..inside(KEY.end);
        let kept = bytes[key.clone()].to_vec();
        let turned = SCRAMBLED.rotate_right(8 * (range.start % 4) as u32).to_le_bytes();
        let (words, rest) = bytes.as_chunks_mut();
        words.fill(turned);
        rest.copy_from_slice(&turned[..rest.len()]);
        if kept.iter().any(|byte| *byte != 0) {
            bytes[key].copy_from_slice(&kept);
        }
    }

    /// Whether memory can be written without a fault.
    fn is_plain(&self, range: &Range<u64>) -> bool {
        let is_plain = |(found, mapping): (Range<u64>, &Mapping)| {
            let writable = mapping.protection & libc::PROT_WRITE != 0;
            writable && mapping.file.is_none() && !mapping.shared && range.end <= found.end
        };
        let is_guarded = self.guarded.range(range.start & !0xfff..range.end).next().is_some();
        self.memory.find(range.start).is_some_and(is_plain) && !is_guarded
    }

    /// The next instruction compares something that nobody has written.
    pub fn suspect_compared(&mut self, thread: &Thread, pc: u64) {
        // Allocators look into blocks that they are given back.
        let own = self.library(pc).is_some_and(|library| {
            self.heap.as_ref().is_some_and(|heap| heap.is_own(pc, &library))
        });
        if thread.allocating.is_none() && !own {
            self.suspect_unwritten(pc, 0);
        }
    }

    /// A system call was made.
    pub fn suspect_handed(&mut self, (number, arguments): (u64, [u64; 6]), answer: i64, pc: u64) {
        for range in buffers::read(number, arguments, answer) {
            let (mut at, end) = (range.address, range.address.saturating_add(range.length));
            let mut bytes = [0; PIECE];
            while at < end {
                let length = (end - at).min(PIECE as u64) as usize;
                let there = guest::read_some(at, &mut bytes[..length]);
                if shows(&bytes[..there]) {
                    return self.suspect_unwritten(pc, at);
                }
                if there < length {
                    break;
                }
                at += there as u64;
            }
        }
    }

    fn suspect_unwritten(&mut self, pc: u64, address: u64) {
        let told = self.scramble.told.entry(pc).or_default();
        *told += 1;
        if *told <= MOST_TOLD {
            self.record_suspect(pc, Look { address, size: 0, write: false }, UNWRITTEN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_seen_wherever_it_was_copied_to() {
        let marked: Vec<u8> = SCRAMBLED.to_le_bytes().into_iter().cycle().skip(3).take(6).collect();
        for lead in 0..5 {
            let bytes = [vec![0; lead], marked.clone(), vec![7]].concat();
            assert!(shows(&bytes), "{lead}");
        }
        assert!(!shows(&marked[..3]));
        assert!(!shows(b"nothing of the kind"));
    }
}
