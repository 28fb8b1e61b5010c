//! The frames of a thread while going back, with what is wanted of control in each.
//!
//! Backwards, a return enters a frame and a call leaves it. Which frames are active at the moment
//! of the question is not known, so at the bottom there is one without an address; a call that
//! leaves it leads to another such.

use super::wanters::Reasons;
use crate::semantics::Parts;

/// A frame while going back.
#[derive(Debug, Default)]
pub struct Frame {
    /// Its number, if a node of the slice is in it.
    pub id: Option<u32>,
    /// Address of its return address; 0 if not known.
    pub slot: u64,
    /// Whether a signal handler was entered here.
    pub handler: bool,
    /// Nodes of the control graph whose deciding branch is wanted, and by whom.
    pub pending: Vec<Pending>,
    /// Registers restored here whose saving has not been met: address, what of which register is
    /// wanted.
    pub restores: Vec<Restore>,
    /// Of a handler that has returned: what is wanted of the registers that it interrupted, and by
    /// whom.
    pub interrupted: (Parts, Reasons),
}

impl Frame {
    /// Whether decisions or savings are still looked for.
    fn is_waiting(&self) -> bool {
        !self.pending.is_empty() || !self.restores.is_empty() || !self.interrupted.0.is_empty()
    }

    /// Takes the wanted decisions about some nodes out.
    pub fn take_pending(&mut self, which: impl Fn(u32) -> bool) -> Vec<Pending> {
        self.pending.extract_if(.., |pending| which(pending.node)).collect()
    }
}

/// Frames that were left, and in which something was of interest.
pub type Left = Vec<Frame>;

/// A wanted decision.
#[derive(Debug)]
pub struct Pending {
    /// Node of the control graph.
    pub node: u32,
    /// Nodes of the slice that want it.
    pub wanters: Vec<u32>,
}

/// A register that was restored from the stack.
#[derive(Debug, Clone)]
pub struct Restore {
    /// Where from.
    pub address: u64,
    /// Which register.
    pub register: u8,
    /// Parts of it that are wanted.
    pub parts: Parts,
    /// When it was restored.
    pub moment: u64,
    /// Who wants it.
    pub wanters: Reasons,
}

/// The frames of a thread, outermost first; never empty.
#[derive(Debug)]
pub struct Frames {
    stack: Vec<Frame>,
}

impl Frames {
    /// One frame of which nothing is known.
    pub fn new() -> Self {
        Self { stack: vec![Frame::default()] }
    }

    /// The innermost frame.
    pub fn top(&mut self) -> &mut Frame {
        self.stack.last_mut().expect("there is always one")
    }

    /// Enters a frame.
    pub fn enter(&mut self, slot: u64, handler: bool) {
        self.stack.push(Frame { slot, handler, ..Frame::default() });
    }

    /// Leaves the frame that a call made: the frames that end there, innermost first. None if the
    /// call's frame was never entered.
    pub fn leave(&mut self, slot: u64) -> Left {
        let mut left = Left::default();
        loop {
            let top = self.top();
            let known = top.slot != 0;
            if top.handler || known && top.slot > slot {
                break;
            }
            let own = !known || top.slot == slot;
            let last = self.stack.pop();
            // Most frames leave nothing behind.
            left.extend(last.filter(|frame| frame.id.is_some() || frame.is_waiting()));
            if self.stack.is_empty() {
                self.stack.push(Frame::default());
                break;
            }
            if own {
                break;
            }
        }
        left
    }

    /// Whether decisions or savings are still looked for.
    pub fn is_waiting(&self) -> bool {
        self.stack.iter().any(Frame::is_waiting)
    }

    /// A register is saved in the innermost frame: takes out the restore that it belongs to.
    pub fn saved(&mut self, address: u64, register: u8) -> Option<Restore> {
        let restores = &mut self.top().restores;
        let found = |restore: &Restore| (restore.address, restore.register) == (address, register);
        let at = restores.iter().rposition(found)?;
        Some(restores.remove(at))
    }

    /// Moments of restores from a range of memory.
    pub fn overlapping(&self, address: u64, bytes: u64) -> Vec<u64> {
        let overlaps = |restore: &&Restore| {
            address < restore.address + 8 && restore.address < address.saturating_add(bytes)
        };
        let restores = self.stack.iter().flat_map(|frame| &frame.restores);
        restores.filter(overlaps).map(|restore| restore.moment).collect()
    }

    /// Leaves the innermost signal handler, with all frames in it.
    pub fn leave_handler(&mut self) -> Left {
        let at = self.stack.iter().rposition(|frame| frame.handler).unwrap_or(0);
        let left = self.stack.drain(at..).collect();
        if self.stack.is_empty() {
            self.stack.push(Frame::default());
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enters a frame that is of interest.
    fn enter(frames: &mut Frames, id: u32, slot: u64, handler: bool) {
        frames.enter(slot, handler);
        frames.top().id = Some(id);
    }

    fn ids(left: &[Frame]) -> Vec<u32> {
        left.iter().filter_map(|frame| frame.id).collect()
    }

    #[test]
    fn a_call_leaves_the_frame_that_a_return_entered() {
        let mut frames = Frames::new();
        frames.top().id = Some(0);
        enter(&mut frames, 1, 0x100, false);
        enter(&mut frames, 2, 0x80, false);
        assert_eq!(ids(&frames.leave(0x80)), [2]);
        assert_eq!(ids(&frames.leave(0x40)), [], "a frame that was never entered");
        assert_eq!(ids(&frames.leave(0x100)), [1]);
        assert_eq!(ids(&frames.leave(0x300)), [0]);
        assert_eq!(frames.top().id, None);
    }

    #[test]
    fn a_handler_is_left_as_a_whole() {
        let mut frames = Frames::new();
        frames.top().id = Some(0);
        enter(&mut frames, 1, 0, true);
        enter(&mut frames, 2, 0x80, false);
        assert_eq!(ids(&frames.leave_handler()), [1, 2]);
        assert_eq!(frames.top().id, Some(0));
    }
}
