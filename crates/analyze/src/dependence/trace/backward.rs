//! Reads a run from its end to its start.
//!
//! Records can only be read forwards, so a chunk that is come to gets an index of where they begin.

use super::Trace;
use super::format::{self, ACCESS, FIRST_EXIT, Item, Raw, THREAD, When};
use base::StepCount;
use base::Tick;
use events::decode::Bases;
use events::record::Cursor;
use std::sync::Arc;

/// A place in a run, from which it is read backwards.
pub struct Backward<'a> {
    trace: &'a Trace,
    /// The chunk being read, and its bytes.
    chunk: usize,
    bytes: Arc<[u8]>,
    /// Where its records start; those from `at` on have been read.
    index: Vec<u32>,
    /// Records that switch threads: index, thread, bases.
    switches: Vec<(u32, u32, Bases)>,
    at: usize,
    when: When,
}

impl<'a> Backward<'a> {
    /// At the end.
    pub(super) fn new(trace: &'a Trace) -> Self {
        Self::before(trace, trace.windows.chunks().len())
    }

    /// Behind the first so many chunks.
    pub(super) fn before(trace: &'a Trace, chunk: usize) -> Self {
        let (index, switches) = (Vec::new(), Vec::new());
        let (bytes, when) = (Arc::from([]), When::default());
        Self { trace, chunk, bytes, index, switches, at: 0, when }
    }

    /// The item before the one read last.
    pub fn previous(&mut self) -> Option<(When, Item<'_>)> {
        loop {
            if self.at == 0 {
                self.open_previous()?;
                continue;
            }
            self.at -= 1;
            match self.kind(self.at) {
                ACCESS => {}
                THREAD => {
                    self.switches.pop();
                    if let Some((_, thread, bases)) = self.switches.last() {
                        (self.when.thread, self.when.bases) = (*thread, *bases);
                    }
                }
                _ => break,
            }
        }
        if let Some(exit) = self.kind(self.at).checked_sub(FIRST_EXIT) {
            let extent = &self.trace.blocks.extents[exit as usize];
            self.when.moment.0 -= u64::from(extent.executed);
            self.when.tick.0 -= u64::from(extent.ticks);
        }
        match self.read(self.at)? {
            Raw::Item(item) => Some((self.when, self.completed(item))),
            Raw::Thread(..) | Raw::Access(_) => None,
        }
    }

    fn kind(&self, at: usize) -> u32 {
        let start = self.index[at] as usize;
        let kind = self.bytes.get(start..start + 4).and_then(|bytes| bytes.try_into().ok());
        kind.map_or(ACCESS, u32::from_le_bytes)
    }

    fn read(&self, at: usize) -> Option<Raw<'_>> {
        let mut cursor = Cursor::new(&self.bytes[self.index[at] as usize..]);
        format::read(&self.trace.blocks.extents, &mut cursor)
    }

    /// An item with the accesses that stand before it in a record of their own.
    fn completed<'i>(&'i self, item: Item<'i>) -> Item<'i> {
        let Item::Path { exit, .. } = item else { return item };
        let exit = &self.trace.blocks.exits[exit as usize];
        if !self.trace.blocks.blocks[exit.block as usize].irregular {
            return item;
        }
        for before in (0..self.at).rev().take(3) {
            match self.read(before) {
                Some(Raw::Access(list)) => return item.with(list),
                Some(Raw::Item(Item::Path { .. })) | None => break,
                _ => {}
            }
        }
        item
    }

    fn open_previous(&mut self) -> Option<()> {
        self.chunk = self.chunk.checked_sub(1)?;
        let trace = self.trace;
        let chunk = &trace.windows.chunks()[self.chunk];
        self.bytes = trace.windows.read(self.chunk, &trace.blocks)?;
        self.index.clear();
        self.switches.clear();
        let exits = &trace.blocks.extents;
        let mut at = 0usize;
        while at + 4 <= self.bytes.len() {
            let kind = u32::from_le_bytes(self.bytes[at..at + 4].try_into().ok()?);
            if kind == THREAD
                && let Raw::Thread(thread, bases) =
                    format::read(exits, &mut Cursor::new(&self.bytes[at..]))?
            {
                self.switches.push((self.index.len() as u32, thread, bases));
            }
            self.index.push(at as u32);
            at += format::length(exits, &self.bytes[at..], kind);
        }
        self.at = self.index.len();
        let (thread, bases) = self.switches.last().map_or_else(Default::default, |s| (s.1, s.2));
        let moment = StepCount(chunk.before + chunk.executed);
        let tick = Tick(chunk.tick.0 + chunk.ticks);
        self.when = When { thread, bases, moment, tick };
        Some(())
    }
}
