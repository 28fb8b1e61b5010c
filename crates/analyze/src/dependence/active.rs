//! The calls that are active at a moment, innermost first: those that were made before and have not
//! returned.

use super::calls;
use super::trace::{Item, Trace, address, slots};
use base::StepCount;
use std::ops::ControlFlow;

/// A call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveCall {
    /// The call instruction, as a number of the trace.
    pub instruction: u32,
    /// When it was executed.
    pub moment: StepCount,
    /// Where its return address is.
    pub slot: Option<u64>,
}

impl Trace {
    /// Goes through the calls of a thread that are active at a moment, as long as it is told to.
    pub fn active_calls(
        &self,
        thread: u32,
        at: StepCount,
        mut each: impl FnMut(ActiveCall) -> ControlFlow<()>,
    ) {
        // Calls that have returned, and handlers that have: what is in those is over.
        let (mut returned, mut handlers) = (0u64, 0u64);
        let mut back = self.backward_from(at);
        while let Some((when, item)) = back.previous() {
            if when.thread != thread || when.moment >= at {
                continue;
            }
            let (exit, payload) = match item {
                Item::Path { exit, payload, .. } if handlers == 0 => (exit, payload),
                Item::Unwound { slots: left, .. } => {
                    for slot in slots(left).rev() {
                        match slot {
                            calls::HANDLER => handlers += 1,
                            _ if handlers == 0 => returned += 1,
                            _ => {}
                        }
                    }
                    continue;
                }
                Item::Resumed => {
                    handlers += 1;
                    continue;
                }
                Item::Handler => {
                    handlers = handlers.saturating_sub(1);
                    continue;
                }
                _ => continue,
            };
            let exit = &self.blocks.exits[exit as usize];
            let block = &self.blocks.blocks[exit.block as usize];
            let room = at.0 - when.moment.0;
            let crossings = &block.crossings[..exit.crossings.into()];
            for crossing in crossings.iter().rev().filter(|c| u64::from(c.index) < room) {
                if !crossing.call {
                    returned += 1;
                } else if returned > 0 {
                    returned -= 1;
                } else {
                    let access = &block.accesses[usize::from(crossing.access)];
                    let call = ActiveCall {
                        instruction: block.instructions[usize::from(crossing.index)],
                        moment: StepCount(when.moment.0 + u64::from(crossing.index)),
                        slot: address(access, payload, when.bases),
                    };
                    if each(call).is_break() {
                        return;
                    }
                }
            }
        }
    }

    /// Where the return address of the frame that runs at a moment is.
    #[must_use]
    pub fn frame_slot(&self, thread: u32, at: StepCount) -> Option<u64> {
        let mut slot = None;
        self.active_calls(thread, at, |call| {
            slot = call.slot;
            ControlFlow::Break(())
        });
        slot
    }
}
