//! A detector that follows only a part of a run.

use super::*;
use crate::rules::machine::Start;

impl Detector {
    /// For now only calls of allocators are told.
    pub fn only_allocations(&mut self) {
        self.machine.watches_writes = false;
    }

    /// From here on everything is told. `suspects`: instructions of which it will be asked whether they
    /// could be judged.
    pub fn begin_window(&mut self, start: &Start, suspects: Vec<u64>) {
        self.machine.watches_writes = self.armed.iter().any(|armed| armed.deferred);
        self.machine.begin_window(start);
        self.guesses = start.words.is_some();
        self.suspects = suspects;
        self.hits = Hits::default();
        self.armed.iter_mut().for_each(|armed| armed.undecided = 0);
    }

    /// Whether the instruction went through a pointer that is older than the window.
    #[must_use]
    pub fn is_unknown(&self, pc: u64) -> bool {
        self.unknown.contains(&pc)
    }

    pub(super) fn not_known(&mut self, pc: u64) {
        if self.suspects.contains(&pc) {
            self.unknown.insert(pc);
        }
    }
}
