//! The active calls of a thread ([`CallStack`]), followed forwards while a trace is written, to notice
//! what plain calls and returns do not tell: frames that are left by `longjmp` or an exception, and
//! signal handlers.

use crate::model::calls::{CallStack, Frame, Landed};

/// What made a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// A call: its instruction, as a number of the trace.
    Call(u32),
    /// The kernel, for a signal.
    Kernel,
}

/// The active calls of one thread.
#[derive(Clone, Debug)]
pub struct Calls(CallStack<Maker>);

impl Default for Calls {
    /// Of whatever stack: see [`CallStack`].
    fn default() -> Self {
        Self(CallStack::new(u64::MAX))
    }
}

/// Frames that were left without returning.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Addresses of their return addresses, innermost first; [`HANDLER`] for those of handlers.
    pub slots: Vec<u64>,
    /// What made the outermost of them, if the frame that runs now is known: there it was left.
    pub outermost: Option<Maker>,
}

/// In place of the address of a frame that the kernel made for a signal handler.
pub const HANDLER: u64 = 0;

impl Left {
    fn add(&mut self, frame: &Frame<Maker>) {
        self.slots.push(if frame.handler { HANDLER } else { frame.slot });
        self.outermost = Some(frame.data);
    }
}

impl Calls {
    /// A call that stored its return address here. Frames that this overwrites were left.
    #[inline]
    pub fn call(&mut self, slot: u64, instruction: u32) -> Left {
        let mut left = Left::default();
        self.0.call(slot, Maker::Call(instruction), |frame| left.add(&frame));
        left
    }

    /// A return through this address. Frames further in were left.
    #[inline]
    pub fn returns(&mut self, slot: u64) -> Left {
        let mut left = Left::default();
        self.0.returns(slot, |frame| left.add(&frame));
        left
    }

    /// A signal handler is entered, whose return address stands here.
    pub fn handler(&mut self, slot: u64) {
        self.0.handler(slot, Maker::Kernel);
    }

    /// Whether a handler is among the active calls.
    #[must_use]
    pub fn in_handler(&self) -> bool {
        self.0.in_handler()
    }

    /// The innermost handler returns to what it interrupted.
    pub fn handler_returns(&mut self) {
        self.0.handler_returns();
    }

    /// The stack pointer was set to this.
    pub fn land(&mut self, stack: u64) -> Left {
        let mut left = Left::default();
        let landed = self.0.land(stack, |frame| left.add(&frame));
        let outermost = left.outermost.filter(|_| landed == Landed::Known);
        Left { outermost, ..left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(slots: &[u64]) -> Calls {
        let mut calls = Calls::default();
        for (number, slot) in (0..).zip(slots) {
            assert_eq!(calls.call(*slot, number), Left::default());
        }
        calls
    }

    fn left(slots: &[u64], outermost: Maker) -> Left {
        Left { slots: slots.to_vec(), outermost: Some(outermost) }
    }

    #[test]
    fn frames_left_without_returning_are_noticed_at_the_next_call_or_return() {
        let mut calls = called(&[0x1000, 0xf00, 0xe00]);
        // longjmp to the outermost of the three, which calls again
        assert_eq!(calls.call(0xf80, 3), left(&[0xe00, 0xf00], Maker::Call(1)));
        assert_eq!(calls.returns(0xf80), Left::default());
        assert_eq!(calls.returns(0x1000), Left::default());
        // a return out of a frame that began before the window
        assert_eq!(calls.returns(0x2000), Left::default());
    }

    #[test]
    fn a_handler_returns_to_what_it_interrupted() {
        let mut calls = called(&[0x1000]);
        calls.handler(0x700);
        assert!(calls.in_handler());
        assert_eq!(calls.call(0x500, 1), Left::default());
        assert_eq!(calls.returns(0x500), Left::default());
        assert_eq!(calls.returns(0x700), Left::default(), "its return address is the kernel's");
        calls.handler_returns();
        assert!(!calls.in_handler());
        assert_eq!(calls.returns(0x1000), Left::default());
    }

    #[test]
    fn a_jump_lands_in_the_frame_that_the_stack_pointer_is_in() {
        let mut calls = called(&[0x1000, 0xf00, 0xe00]);
        assert_eq!(calls.land(0xdf8), Left::default(), "the frame that it was in");
        assert_eq!(calls.land(0xf00), left(&[0xe00], Maker::Call(2)), "an empty frame");
        assert_eq!(calls.land(0xf08), left(&[0xf00], Maker::Call(1)));
        let unknown = Left { slots: vec![0x1000], outermost: None };
        assert_eq!(calls.land(0x3000), unknown, "one that is not known");
    }

    #[test]
    fn a_jump_lands_out_of_a_handler_wherever_its_stack_is() {
        for frame in [0x800, 0x9000] {
            let mut calls = called(&[0x1000, 0xf00]);
            calls.handler(frame);
            assert_eq!(calls.call(frame - 0x80, 9), Left::default());
            assert_eq!(calls.land(frame - 0x40), left(&[frame - 0x80], Maker::Call(9)));
            assert_eq!(calls.land(0xe80), left(&[HANDLER], Maker::Kernel));
            assert_eq!(calls.land(0xf80), left(&[0xf00], Maker::Call(1)));
        }
    }
}
