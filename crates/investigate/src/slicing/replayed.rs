//! The process itself at a moment that is asked about: registers and memory, from a replay. A trace knows
//! where values are and not what they are, but `p->next` is wherever `p` points to.

use super::asking::ResolvedMoment;
use super::execution::Execution;
use crate::case::Case;
use crate::error::fault_or_input;
use crate::scene::{At, registers_of};
use analyze::slice::Slice;
use analyze::slice::ending::Asked;
use analyze::slice::graph::Because;
use anyhow::bail;
use base::Address;
use base::StepCount;
use replay::{Instant, StoppedProcess, Timeline};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use symbols::Scene;

/// Frames that are unwound: a value is asked about in the innermost one.
const FRAMES: usize = 4;

/// A replay that goes wherever a question wants to look.
pub struct Replayed(Mutex<Timeline>);

impl Replayed {
    /// Of a process of a case.
    pub fn of(case: &Case, process: u32) -> anyhow::Result<Self> {
        Ok(Self(Mutex::new(case.timeline(process)?)))
    }

    fn go(&self, to: Option<Instant>) -> anyhow::Result<Option<StoppedProcess>> {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(to) = to else { return line.seek_end().map(Some).map_err(fault_or_input) };
        let standing = line.seek(to).map_err(fault_or_input)?;
        Ok((standing.instant() == to).then_some(standing))
    }
}

impl Execution {
    /// Looks at the process at a moment; nothing if it cannot be gone there.
    pub(super) fn look<R>(
        &self,
        at: &ResolvedMoment,
        look: impl FnOnce(&Scene<'_>) -> R,
    ) -> anyhow::Result<Option<R>> {
        let Some(sight) = &self.sight else { return Ok(None) };
        let position = self.position(at.moment);
        let to = position.map(|at| Instant { time: at.tick.0, pc: Some(at.pc.0) });
        let Some(standing) = sight.go(to)? else { return Ok(None) };
        if standing.at.thread.number != at.thread as i32 {
            return Ok(None);
        }
        let (memory, registers) = (At(&standing), registers_of(&standing.at.thread));
        let stack = self.program.unwind_at_most(&registers, &memory, FRAMES);
        let thread_pointer = Some(Address(standing.at.thread.bases[0]));
        let program = &self.program;
        Ok(Some(look(&Scene { program, memory: &memory, stack: &stack, thread_pointer })))
    }

    /// Refuses an answer about a variable that was not there yet: what stands in its place is left over
    /// from a call that was over before this one began.
    pub(super) fn refuse_left_over(
        &self,
        asked: &Asked,
        values: &[String],
        answer: &Slice,
    ) -> anyhow::Result<()> {
        let (mut call, named) = (None, |value: &String| !value.starts_with(['$', '[']));
        if !values.iter().all(named) || values.is_empty() {
            return Ok(());
        }
        self.trace.active_calls(asked.thread, asked.moment, |active| {
            call = Some(active);
            ControlFlow::Break(())
        });
        let Some((call, slot)) = call.and_then(|call| Some((call, call.slot?))) else {
            return Ok(());
        };
        let below = |address: u64| address < slot && slot - address < LARGEST_FRAME;
        if !asked.wants.memory.iter().all(|(address, _)| below(*address))
            || asked.wants.memory.is_empty()
            || !asked.wants.parts.is_empty()
        {
            return Ok(());
        }
        let direct = answer.edges.iter().filter(|edge| edge.user == 0);
        let makers = direct.filter(|edge| matches!(edge.because, Because::Memory { .. }));
        let mut makers = makers.map(|edge| &answer.nodes[edge.on as usize]).peekable();
        let Some(first) = makers.peek().copied() else { return Ok(()) };
        if makers.any(|maker| maker.moment > call.moment) {
            return Ok(());
        }
        let by = first.instruction.map(|id| self.trace.blocks.statics[id as usize].pc);
        let by = by.map_or_else(String::new, |pc| {
            format!(" by {}", self.program.symbolise(Address(pc)).place())
        });
        bail!(
            "{} has no value yet at that moment: a moment is before the line is executed, and what stands \
             there was left{by} before this call began; --after PLACE asks when the line has been executed",
            values.join(", ")
        )
    }

    /// The moment at which a thread goes on after another one.
    pub(super) fn next_moment(&self, thread: u32, after: StepCount) -> Option<ResolvedMoment> {
        let next = self.trace.next_executed(thread, StepCount(after.0 + 1))?;
        Some(ResolvedMoment { thread, moment: next.moment, executed: Some(next) })
    }
}

/// Frames are smaller than this.
const LARGEST_FRAME: u64 = 8 << 20;
