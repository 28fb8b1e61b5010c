//! The calls that are active in a thread, from the calls and returns that go by.
//!
//! A call is known by where its return address stands. Frames below a return or a new call are
//! gone, however they ended, so `longjmp`, exceptions and tail calls need no special care. A jump
//! to another stack (coroutines) is recognised by its distance and leaves the frames alone.

use crate::rules::state::BlockId;

/// Stacks are further apart than this, frames of one stack are not.
const ONE_STACK: u64 = 64 << 20;
/// Frames that a finding shows.
pub const DEEPEST: usize = 24;

/// An active call.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The call instruction.
    pub pc: u64,
    /// Where the return address stands.
    pub slot: u64,
    /// The frame's block, once an address of it was taken.
    pub block: Option<BlockId>,
    /// The blocks of variables in it whose addresses were taken, by where they begin.
    pub locals: Vec<(u64, BlockId)>,
    /// The caller's frame pointer, if it keeps one.
    pub callers_frame: Option<u64>,
}

/// The active calls of a thread, outermost first.
#[derive(Clone, Default)]
pub struct Calls {
    frames: Vec<Frame>,
}

impl Calls {
    /// A call has pushed its return address. The frames that this shows to be gone go to `left`.
    pub fn call(
        &mut self,
        pc: u64,
        slot: u64,
        callers_frame: Option<u64>,
        left: impl FnMut(BlockId),
    ) {
        self.drop_below(slot, left);
        self.frames.push(Frame { pc, slot, block: None, locals: Vec::new(), callers_frame });
    }

    /// A return has read its return address. The frame pointer that the caller had, if the call
    /// was seen.
    pub fn ret(&mut self, slot: u64, left: impl FnMut(BlockId)) -> Option<u64> {
        let last = self.drop_below(slot, left)?;
        last.callers_frame.filter(|_| last.slot == slot)
    }

    fn drop_below(&mut self, slot: u64, mut left: impl FnMut(BlockId)) -> Option<Frame> {
        let gone = |frame: &mut Frame| frame.slot <= slot && slot - frame.slot <= ONE_STACK;
        let mut last = None;
        while let Some(frame) = self.frames.pop_if(gone) {
            let locals = frame.locals.iter().map(|(_, block)| *block);
            frame.block.into_iter().chain(locals).for_each(&mut left);
            last = Some(frame);
        }
        last
    }

    /// The innermost call.
    pub fn top(&mut self) -> Option<&mut Frame> {
        self.frames.last_mut()
    }

    /// The instruction that made the innermost call.
    #[must_use]
    pub fn innermost(&self) -> Option<u64> {
        self.frames.last().map(|frame| frame.pc)
    }

    /// The instruction at `pc` and the calls that led there, innermost first.
    #[must_use]
    pub fn stack(&self, pc: u64) -> Vec<u64> {
        let calls = self.frames.iter().rev().map(|frame| frame.pc);
        std::iter::once(pc).chain(calls).take(DEEPEST).collect()
    }

    /// The calls that are active, innermost first.
    #[must_use]
    pub fn callers(&self) -> Vec<u64> {
        self.frames.iter().rev().map(|frame| frame.pc).take(DEEPEST).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_below_a_return_are_gone_however_they_ended() {
        let mut calls = Calls::default();
        let mut left = Vec::new();
        calls.call(1, 1000, Some(1100), |_| ());
        calls.call(2, 900, None, |_| ());
        calls.top().expect("a frame").block = Some(BlockId(7));
        calls.call(3, 800, None, |_| ());
        assert_eq!(calls.stack(4), [4, 3, 2, 1]);
        // longjmp into the frame of call 1, which then returns elsewhere.
        calls.call(5, 950, None, |block| left.push(block));
        assert_eq!(calls.stack(6), [6, 5, 1]);
        assert_eq!(left, [BlockId(7)]);
        assert_eq!(calls.ret(1000, |_| ()), Some(1100));
        assert_eq!(calls.stack(7), [7]);
    }

    #[test]
    fn another_stack_leaves_the_frames_alone() {
        let mut calls = Calls::default();
        calls.call(1, 1000, None, |_| ());
        calls.call(2, 1000 + 2 * ONE_STACK, None, |_| ());
        assert_eq!(calls.callers(), [2, 1]);
    }
}
