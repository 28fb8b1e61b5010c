//! Collectors that look through the stack for whatever may be a pointer (Boehm's, ruby's, emacs's): they read word after
//! word from their own frame up to where the stack begins, whoever's variables these are and whether they were
//! written or not. An instruction that does so is known by that alone: no overflow gets so far, through several frames and
//! all that is in them.

use super::*;

/// Words one after the other behind which an instruction is taken to look through the stack, and frames.
const WORDS: u32 = 24;
const FRAMES: usize = 3;
const WORD: u64 = 8;

/// Words that an instruction has read one after the other, outside of the frame that its pointer was made in.
#[derive(Clone, Copy, Default)]
struct Scan {
    first: u64,
    last: u64,
    words: u32,
    /// Whether it has been found to look through the stack.
    found: bool,
}

/// The instructions that read beyond a frame.
#[derive(Clone, Default)]
pub(super) struct Scans(FxHashMap<u64, Scan>);

impl Detector {
    /// An instruction reads beyond the frame, or the variable, that its pointer was made from.
    pub(super) fn reads_beyond(&mut self, pc: u64, access: &Access, block: Option<BlockId>) {
        let region = block.and_then(|id| self.machine.blocks.get(id)).map(|b| b.facts.region);
        let Access { address, size, write } = *access;
        let word = !write && u64::from(size) == WORD && address.is_multiple_of(WORD);
        if !word || region != Some(REGION_STACK) {
            return;
        }
        let scan = self.scans.0.entry(pc).or_default();
        if address != scan.last.wrapping_add(WORD) {
            (scan.first, scan.words) = (address, 0);
        }
        (scan.last, scan.words) = (address, scan.words + 1);
        if scan.words >= WORDS && !scan.found {
            let frames = self.machine.running().calls.frames_between(scan.first, address);
            scan.found = frames >= FRAMES;
        }
    }

    /// Whether something was found because of a collector that looks through the stack.
    #[must_use]
    pub fn is_of_scan(&self, hit: &Hit) -> bool {
        let scans = |pc: u64| self.scans.0.get(&pc).is_some_and(|scan| scan.found);
        match hit.subject {
            Subject::Unwritten { read, .. } => scans(read),
            Subject::Access { .. } => hit.stack.first().is_some_and(|pc| scans(*pc)),
            _ => false,
        }
    }
}
