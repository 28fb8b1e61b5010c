//! What the processes of a recording tell each other about the memory they share: the pages that
//! each has written, in the order of the tree baton. Only its holder reads or writes here.

use super::super::files::shared;
use super::watch::Page;
use crate::log_ring::JOURNAL;
use std::sync::atomic::Ordering;

/// How far a process has read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Reader {
    read: u64,
    unreported: u32,
}

impl Reader {
    /// Has read all there is.
    pub fn at_end() -> Self {
        let (read, unreported) = (&shared().written, &shared().unreported);
        Self { read: read.load(Ordering::Acquire), unreported: unreported.load(Ordering::Acquire) }
    }

    /// What was written since it read last; `None` if that is not known.
    pub fn read(&mut self) -> Option<Vec<Page>> {
        let before = std::mem::replace(self, Self::at_end());
        if before.unreported != self.unreported || self.read - before.read > JOURNAL as u64 {
            return None;
        }
        let mut pages: Vec<Page> = (before.read..self.read)
            .map(|index| Page(shared().journal[index as usize % JOURNAL].load(Ordering::Acquire)))
            .collect();
        pages.sort_unstable();
        pages.dedup();
        Some(pages)
    }
}

/// A page has been written.
pub fn report(page: Page) {
    let index = shared().written.load(Ordering::Acquire);
    shared().journal[index as usize % JOURNAL].store(page.0, Ordering::Release);
    shared().written.store(index + 1, Ordering::Release);
}

/// Something has been written, and nobody says what.
pub fn report_unknown() {
    shared().unreported.fetch_add(1, Ordering::AcqRel);
}
