//! Breakpoints of a client's, with conditions in its bytecode. The process itself is left to ask them where nothing
//! else stops at the same instruction, so that one that fails a million times costs no message.

use super::Debugger;
use super::bytecode::{self, Condition, Sight};
use recording::log::ThreadData;
use replay::StoppedProcess;

impl Debugger<'_> {
    /// Conditions that the process itself can be left to ask: those of instructions that nothing else stops at.
    pub(super) fn filters(&self) -> Vec<(u64, Condition)> {
        let elsewhere =
            |pc: &u64| self.conditional.iter().any(|it| it.pcs.binary_search(pc).is_ok());
        let alone = self.breakpoints.iter().filter(|(pc, _)| !elsewhere(pc));
        alone.flat_map(|(pc, all)| all.iter().map(|it| (*pc, it.clone()))).collect()
    }

    /// Whether a breakpoint of a client's stops a thread that is about to execute an instruction.
    pub(super) fn breaks(
        &self,
        thread: &ThreadData,
        read: impl Fn(u64, &mut [u8]) -> usize,
    ) -> bool {
        let Some(conditions) = self.breakpoints.get(&thread.pc) else { return false };
        let sight = Looked { thread, read };
        conditions.is_empty() || conditions.iter().any(|condition| condition.holds(&sight))
    }

    /// The same where a process stands.
    pub(super) fn breaks_at(&self, at: &StoppedProcess) -> bool {
        self.breaks(&at.at.thread, |address, into| at.read(address, into))
    }
}

/// A thread as a condition of a client's sees it.
struct Looked<'a, R> {
    thread: &'a ThreadData,
    read: R,
}

impl<R: Fn(u64, &mut [u8]) -> usize> Sight for Looked<'_, R> {
    fn register(&self, number: u16) -> Option<u64> {
        bytecode::register(number, &self.thread.general, self.thread.pc)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        (self.read)(address, into) == into.len()
    }
}
