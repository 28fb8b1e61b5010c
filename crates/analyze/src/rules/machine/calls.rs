//! What rules keep of the calls that are active in a thread.

use super::dynamic::Room;
use crate::model::calls::CallStack;
use crate::model::stacks::DEEPEST;
use crate::rules::state::BlockId;

/// Stacks are further apart than this, frames of one stack are not.
const ONE_STACK: u64 = 64 << 20;

/// What is kept of a frame.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The call instruction.
    pub pc: u64,
    /// The frame's block, once an address of it was taken.
    pub block: Option<BlockId>,
    /// The blocks of variables in it whose addresses were taken, by their numbers.
    pub locals: Vec<(u32, BlockId)>,
    /// Whether the function has moved its return address.
    pub moved: bool,
    /// The blocks of variables that are below the stack pointer by now.
    pub given_back: Vec<BlockId>,
    /// What was made room for while it runs (`alloca`, arrays of variable length), outermost first.
    pub dynamic: Vec<Room>,
    /// The caller's frame pointer, if it keeps one.
    pub callers_frame: Option<u64>,
}

impl Frame {
    /// Its blocks.
    fn blocks(&self) -> impl Iterator<Item = BlockId> {
        let locals = self.locals.iter().map(|(_, block)| *block);
        let rooms = self.dynamic.iter().map(|room| room.block);
        self.block.into_iter().chain(locals).chain(rooms)
    }
}

/// The active calls of a thread.
#[derive(Clone)]
pub struct Calls(CallStack<Frame>);

impl Default for Calls {
    fn default() -> Self {
        Self(CallStack::new(ONE_STACK))
    }
}

impl Calls {
    /// A call has pushed its return address. The blocks of frames that this shows to be gone go to
    /// `left`.
    #[inline]
    pub fn call(
        &mut self,
        pc: u64,
        slot: u64,
        callers_frame: Option<u64>,
        mut left: impl FnMut(BlockId),
    ) {
        let (locals, given_back, dynamic) = Default::default();
        let moved = false;
        let frame = Frame { pc, block: None, locals, moved, given_back, dynamic, callers_frame };
        self.0.call(slot, frame, |gone| gone.data.blocks().for_each(&mut left));
    }

    /// A return has read its return address. The frame pointer that the caller had, if the call
    /// was seen.
    #[inline]
    pub fn ret(&mut self, slot: u64, mut left: impl FnMut(BlockId)) -> Option<u64> {
        let own = self.0.returns(slot, |gone| gone.data.blocks().for_each(&mut left))?;
        own.data.blocks().for_each(left);
        own.data.callers_frame
    }

    /// The innermost call, and where its return address stands.
    pub fn top(&mut self) -> Option<(u64, &mut Frame)> {
        self.0.top_mut().map(|frame| (frame.slot, &mut frame.data))
    }

    /// The instruction that made the innermost call.
    #[must_use]
    pub fn innermost(&self) -> Option<u64> {
        self.0.top().map(|frame| frame.data.pc)
    }

    /// Where the function is whose return address stands at `slot`, if the innermost one is at `pc`.
    #[must_use]
    pub fn pc_in(&self, slot: u64, pc: u64) -> Option<u64> {
        let mut at = pc;
        for frame in self.0.iter() {
            if frame.slot >= slot {
                return (frame.slot == slot).then_some(at);
            }
            at = frame.data.pc;
        }
        None
    }

    /// The call that the function waits for whose return address stands at `slot`; nothing if it is the innermost one.
    #[must_use]
    pub fn waits_at(&self, slot: u64) -> Option<u64> {
        let inner = self.0.iter().take_while(|frame| frame.slot < slot).last()?;
        self.pc_in(slot, inner.data.pc).map(|_| inner.data.pc)
    }

    /// How many return addresses stand between two addresses.
    #[must_use]
    pub fn frames_between(&self, first: u64, last: u64) -> usize {
        self.0.iter().filter(|frame| (first..=last).contains(&frame.slot)).count()
    }

    /// Whether addresses of variables of the innermost function were taken.
    #[must_use]
    pub fn has_locals(&self) -> bool {
        self.0.top().is_some_and(|frame| !frame.data.locals.is_empty())
    }

    /// Whether a block was given back by a function that has not returned.
    #[must_use]
    pub fn has_given_back(&self, id: BlockId) -> bool {
        self.0.iter().any(|frame| frame.data.given_back.contains(&id))
    }

    /// The frame that an address is in: where its return address stands, and where its function is if the
    /// innermost one is at `pc`.
    #[must_use]
    pub fn around(&self, address: u64, pc: u64) -> Option<(u64, u64)> {
        let slot = self.0.iter().map(|frame| frame.slot).find(|slot| *slot > address)?;
        Some((slot, self.pc_in(slot, pc)?))
    }

    /// The instruction at `pc` and the calls that led there, innermost first.
    #[must_use]
    pub fn stack(&self, pc: u64) -> Vec<u64> {
        let calls = self.0.iter().map(|frame| frame.data.pc);
        std::iter::once(pc).chain(calls).take(DEEPEST).collect()
    }

    /// The calls that are active, innermost first.
    #[must_use]
    pub fn callers(&self) -> Vec<u64> {
        self.0.iter().map(|frame| frame.data.pc).take(DEEPEST).collect()
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
        calls.top().expect("a frame").1.block = Some(BlockId(7));
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
    fn the_blocks_of_a_function_that_returns_are_left_too() {
        let mut calls = Calls::default();
        let mut left = Vec::new();
        calls.call(1, 1000, None, |_| ());
        calls.top().expect("a frame").1.locals.push((9, BlockId(3)));
        assert_eq!(calls.ret(1000, |block| left.push(block)), None);
        assert_eq!(left, [BlockId(3)]);
    }

    #[test]
    fn a_function_is_where_its_call_is_unless_it_is_the_innermost() {
        let mut calls = Calls::default();
        calls.call(1, 1000, None, |_| ());
        calls.call(2, 900, None, |_| ());
        assert_eq!((calls.pc_in(900, 7), calls.pc_in(1000, 7)), (Some(7), Some(2)));
        assert_eq!(calls.pc_in(950, 7), None);
        assert_eq!((calls.around(890, 7), calls.around(910, 7)), (Some((900, 7)), Some((1000, 2))));
        assert_eq!(calls.around(1000, 7), None);
    }

    #[test]
    fn another_stack_leaves_the_frames_alone() {
        let mut calls = Calls::default();
        calls.call(1, 1000, None, |_| ());
        calls.call(2, 1000 + 2 * ONE_STACK, None, |_| ());
        assert_eq!(calls.callers(), [2, 1]);
    }
}
