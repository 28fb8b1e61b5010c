//! The calls that are active in a thread, followed forwards: what a call, a return, a non-local jump
//! (`longjmp`, an exception) and a signal handler do to them.
//!
//! A frame is known by where its return address stands. Frames below a return or a new call are gone,
//! however they ended, so whoever hears of calls and returns alone knows the innermost frame again at the
//! next of them, and all frames when the one returns that a jump has led to; [`CallStack::land`] is for
//! those who learn of a jump when it happens. What else an analysis keeps of a frame is its own affair
//! (`F`).
//!
//! Two followers stand on this, and differ in one respect: how far apart frames of one stack may be.
//! Rules give 64 MiB, so that a switch to another stack (coroutines) leaves the frames of the first one
//! alone. Slices give no limit: what they tell of a frame that was left is checked against where control
//! goes on, which a frame that was kept by mistake would spoil.
//!
//! The slicer's own frames (`slice::frames`, `slice::forward::frames`) are no followers: they go through
//! a trace that already says which frames were left, the former backwards, in the hot loop of a walk.

/// A frame: an active call, or a signal handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<F> {
    /// Where the return address stands.
    pub slot: u64,
    /// Whether the kernel made it, for a signal.
    pub handler: bool,
    /// What its analysis keeps of it.
    pub data: F,
}

/// The active calls of a thread, outermost first.
#[derive(Clone, Debug)]
pub struct CallStack<F> {
    frames: Vec<Frame<F>>,
    reach: u64,
}

/// Where a non-local jump has led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landed {
    /// Into a frame that is known.
    Known,
    /// Into one that began before anything was told, or on a stack that is not known.
    Unknown,
}

impl<F> CallStack<F> {
    /// No calls. Frames that are further apart than `reach` bytes are on different stacks.
    #[must_use]
    pub fn new(reach: u64) -> Self {
        Self { frames: Vec::new(), reach }
    }

    /// A call has pushed its return address at `slot`. The frames that this shows to be gone go to
    /// `left`, innermost first.
    #[inline]
    pub fn call(&mut self, slot: u64, data: F, left: impl FnMut(Frame<F>)) {
        self.drop_below(slot.saturating_add(1), left);
        self.frames.push(Frame { slot, handler: false, data });
    }

    /// A return has read its return address at `slot`: the frame that it leaves, if its call was seen.
    /// Frames further in go to `left`, innermost first.
    #[inline]
    pub fn returns(&mut self, slot: u64, left: impl FnMut(Frame<F>)) -> Option<Frame<F>> {
        self.drop_below(slot, left);
        self.frames.pop_if(|frame| frame.slot == slot && !frame.handler)
    }

    /// A signal handler is entered, whose return address stands at `slot`.
    pub fn handler(&mut self, slot: u64, data: F) {
        self.frames.push(Frame { slot, handler: true, data });
    }

    /// Whether a handler is among the active calls.
    #[must_use]
    pub fn in_handler(&self) -> bool {
        self.frames.iter().any(|frame| frame.handler)
    }

    /// The innermost handler returns to what it interrupted.
    pub fn handler_returns(&mut self) {
        if let Some(at) = self.frames.iter().rposition(|frame| frame.handler) {
            self.frames.truncate(at);
        }
    }

    /// A jump has set the stack pointer to `stack`. The frame that it is in is the one whose return
    /// address is the next above it, also if a handler has a stack of its own. Frames that were left go
    /// to `left`, innermost first.
    pub fn land(&mut self, stack: u64, left: impl FnMut(Frame<F>)) -> Landed {
        let above = self.frames.iter().enumerate().filter(|(_, frame)| frame.slot >= stack);
        let nearest = above.min_by_key(|(at, frame)| (frame.slot, usize::MAX - at));
        let (first, landed) = match nearest {
            Some((at, _)) => (at + 1, Landed::Known),
            None => (0, Landed::Unknown),
        };
        self.frames.drain(first..).rev().for_each(left);
        landed
    }

    /// The innermost frame.
    #[must_use]
    pub fn top(&self) -> Option<&Frame<F>> {
        self.frames.last()
    }

    /// The innermost frame, to change.
    pub fn top_mut(&mut self) -> Option<&mut Frame<F>> {
        self.frames.last_mut()
    }

    /// The frames, innermost first.
    pub fn iter(&self) -> impl Iterator<Item = &Frame<F>> {
        self.frames.iter().rev()
    }

    /// The frames, innermost first, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Frame<F>> {
        self.frames.iter_mut().rev()
    }

    /// How many frames there are.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// Drops the innermost frames whose return addresses stand below an address.
    fn drop_below(&mut self, address: u64, mut left: impl FnMut(Frame<F>)) {
        let reach = self.reach;
        let gone = |frame: &mut Frame<F>| frame.slot < address && address - 1 - frame.slot <= reach;
        while let Some(frame) = self.frames.pop_if(gone) {
            left(frame);
        }
    }
}

#[cfg(test)]
mod tests;
