//! The look at poisoned memory that is used: compared, or handed to the kernel.

use crate::runner::buffers;
use crate::runner::engine::Engine;
use crate::runner::guest;
use crate::runner::thread::Thread;
use events::plan::POISON;
use events::suspicion::{Suspicion, Use};

/// Suspicions that are reported of one place.
const MOST_REPORTED: u32 = 4;
/// Bytes that are looked at at a time.
const PIECE: usize = 4096;

/// Whether bytes show the mark, from wherever they were copied.
fn shows(bytes: &[u8]) -> bool {
    let turned = |by: u32| POISON.rotate_right(8 * by).to_le_bytes();
    let marks = [0, 1, 2, 3].map(turned);
    bytes.windows(4).any(|window| marks.iter().any(|mark| mark == window))
}

impl Engine {
    /// The next instruction compares something that nobody has written.
    pub fn suspect_compared(&mut self, thread: &Thread, pc: u64) {
        // Allocators look into blocks that they are given back.
        let own = self.library(pc).is_some_and(|library| {
            let poison = self.observed.screens.poison.as_ref();
            poison.is_some_and(|poison| poison.allocators.is_own(pc, &library))
        });
        if thread.calls.poison.is_none() && !own {
            self.suspect_unwritten(pc, Use::Compared);
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
                    return self.suspect_unwritten(pc, Use::Handed(at));
                }
                if there < length {
                    break;
                }
                at += there as u64;
            }
        }
    }

    fn suspect_unwritten(&mut self, pc: u64, used: Use) {
        let Some(poison) = &mut self.observed.screens.poison else { return };
        let reported = poison.reported.entry(pc).or_default();
        *reported += 1;
        if *reported <= MOST_REPORTED {
            self.suspect(pc, Suspicion::Unwritten(used));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_seen_wherever_it_was_copied_to() {
        let marked: Vec<u8> = POISON.to_le_bytes().into_iter().cycle().skip(3).take(6).collect();
        for lead in 0..5 {
            let bytes = [vec![0; lead], marked.clone(), vec![7]].concat();
            assert!(shows(&bytes), "{lead}");
        }
        assert!(!shows(&marked[..3]));
        assert!(!shows(b"nothing of the kind"));
    }
}
