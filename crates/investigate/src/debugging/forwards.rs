//! Forwards: one instruction, or on to a breakpoint, an access to watched memory or a moment to stop at.

use super::points::Reason;
use super::watching::{Touch, Watched};
use super::{Debugger, Patience, Stop};
use crate::error::fault_or_input;
use base::ThreadNumber;
use replay::Instant;
use std::ops::Range;

/// Ticks that are looked through for accesses at first; four times as many each time that there are none.
const FIRST_STRETCH: u64 = 1 << 16;

/// Ticks after which it is asked whether to go on: some tenths of a second.
const STRETCH: u64 = 1 << 24;

/// The same while it steps through some code.
const STEPPED: u64 = 1 << 16;

impl Debugger<'_> {
    /// Executes one instruction of a thread; others may run meanwhile if it waits.
    pub fn step(&mut self, thread: ThreadNumber) -> anyhow::Result<Stop> {
        self.step_within(thread, 0..0, &mut || false)
    }

    /// Executes instructions of a thread, one at least, until it has left some code or comes to what stops it.
    pub fn step_within(
        &mut self,
        thread: ThreadNumber,
        within: Range<u64>,
        patience: Patience<'_>,
    ) -> anyhow::Result<Stop> {
        let number = self.kernel_number(thread)?;
        loop {
            self.arrive_here();
            if self.is_altered() {
                return self.step_away(thread, within);
            }
            if let Some(end) = self.end() {
                return Ok(end);
            }
            // What is asked of each instruction, or is near, is looked for one by one.
            let near = self.next_point()?.is_some_and(|at| at.time <= self.at.at.time + STEPPED);
            let single = near || !self.watches.is_empty() || !self.conditional.is_empty();
            let stop = match single {
                true => self.step_watching(number)?,
                false => self.step_some(number, within.clone())?,
            };
            let pc = self.at.at.thread.pc;
            if stop != Stop::Moved || !within.contains(&pc) {
                return Ok(stop);
            }
            if self.breaks_at(&self.at) {
                return Ok(Stop::Breakpoint);
            }
            if single && let Some(stop) = self.stops_here()? {
                return Ok(stop);
            }
            if patience() {
                return Ok(Stop::Interrupted);
            }
        }
    }

    /// Executes instructions of a thread as long as they are within some code, for a while.
    fn step_some(&mut self, thread: i32, within: Range<u64>) -> anyhow::Result<Stop> {
        let stops = self.breakpoints.keys().copied().filter(|pc| within.contains(pc)).collect();
        let until = Instant { time: self.at.at.time.saturating_add(STEPPED), pc: None };
        let until = (!within.is_empty()).then_some(until);
        self.line
            .go_on_stepping(&mut self.at, thread, (within, stops), until)
            .map_err(fault_or_input)?;
        Ok(self.end().unwrap_or(Stop::Moved))
    }

    /// Executes one instruction of a thread, and tells whether watched memory was accessed meanwhile.
    fn step_watching(&mut self, thread: i32) -> anyhow::Result<Stop> {
        if self.watches.is_empty() {
            return self.step_some(thread, 0..0);
        }
        let mut before = self.line.copy(&self.at).map_err(fault_or_input)?;
        let held = self.held(&before);
        let stop = self.step_some(thread, 0..0)?;
        if stop != Stop::Moved {
            return Ok(stop);
        }
        let touched = self.touches(&mut before, Some(self.at.instant()))?;
        if let Some(Touch { watched, .. }) = touched.first() {
            return Ok(Stop::Watched(*watched));
        }
        let now = self.held(&self.at);
        let changed = now.iter().zip(&held).find(|(now, before)| now != before);
        let changed = changed.map(|((watch, _), _)| Watched { watch: *watch, write: true });
        Ok(changed.map_or(Stop::Moved, Stop::Watched))
    }

    /// A breakpoint with a condition that holds where it stands, or a moment to stop at.
    fn stops_here(&mut self) -> anyhow::Result<Option<Stop>> {
        if let Some(reason) = self.reason_at(&self.at)
            && reason != Reason::Altered
        {
            return Ok(Some(Stop::Point(reason)));
        }
        let here = self.line.copy(&self.at).map_err(fault_or_input)?;
        // A call is stopped at where it is made, not where it has come to.
        Ok(self.decide(&here)?.filter(|(_, call)| call.is_none()).map(|(stop, _)| stop))
    }

    /// Goes on to the next breakpoint, access to watched memory or moment to stop at, or to the end.
    pub fn resume(&mut self, patience: Patience<'_>) -> anyhow::Result<Stop> {
        self.arrive_here();
        loop {
            if self.is_altered() {
                return self.resume_away();
            }
            let limit = self.next_point()?;
            let stop = self.resume_within(limit, patience)?;
            if stop != Stop::Moved {
                return Ok(stop);
            }
            match self.reason_at(&self.at) {
                Some(Reason::Altered) => self.arrive(),
                Some(reason) => return Ok(Stop::Point(reason)),
                None => {}
            }
        }
    }

    fn arrive_here(&mut self) {
        if self.armed.is_some() && self.reason_at(&self.at) == Some(Reason::Altered) {
            self.arrive();
        }
    }

    /// The same, and not further than to a moment.
    fn resume_within(
        &mut self,
        limit: Option<Instant>,
        patience: Patience<'_>,
    ) -> anyhow::Result<Stop> {
        if let Some(end) = self.end() {
            return Ok(end);
        }
        let began = self.at.instant();
        let (pcs, filters) = (self.stopping(), self.filters());
        let mut stretch = FIRST_STRETCH;
        loop {
            if patience() {
                return Ok(Stop::Interrupted);
            }
            let (touch, until) = self.first_touch(stretch, limit)?;
            let (begin, before) = (self.at.instant(), self.held(&self.at));
            self.line
                .go_on_to_hit_if(&mut self.at, (&pcs, &filters), 1, Some(until))
                .map_err(fault_or_input)?;
            // No instruction has written it up to here.
            if self.held(&self.at) != before {
                return self.go_to_change((begin, self.at.instant()), &before, true);
            }
            if self.at.at.hits == 1 {
                match self.decide_here()? {
                    Some(Some(stop)) => return Ok(stop),
                    Some(None) => continue,
                    None => {}
                }
                let at = self.line.copy(&self.at).map_err(fault_or_input)?;
                match self.decide(&at)? {
                    // The call that it stood at: it has been told.
                    Some((_, Some(call))) if call == began => {}
                    Some((stop, call)) => {
                        if let Some(call) = call {
                            self.at = self.line.seek(call).map_err(fault_or_input)?;
                        }
                        return Ok(stop);
                    }
                    None => {}
                }
                continue;
            }
            if let Some(Touch { watched, .. }) = touch {
                let running = self.running();
                self.step(running)?;
                return Ok(Stop::Watched(watched));
            }
            if let Some(end) = self.end() {
                return Ok(end);
            }
            if limit.is_some_and(|limit| self.at.at.time > limit.time || self.at.instant() == limit)
            {
                return Ok(Stop::Moved);
            }
            stretch = stretch.saturating_mul(4).min(STRETCH);
        }
    }

    /// The first access to watched memory in a stretch of time, and how far it has been looked for.
    fn first_touch(
        &mut self,
        stretch: u64,
        limit: Option<Instant>,
    ) -> anyhow::Result<(Option<Touch>, Instant)> {
        let stretch = if self.watches.is_empty() { STRETCH } else { stretch };
        let until = Instant { time: self.at.at.time.saturating_add(stretch), pc: None };
        let until = limit.filter(|limit| limit.time <= until.time).unwrap_or(until);
        if self.watches.is_empty() || self.at.instant() == until {
            return Ok((None, until));
        }
        let mut copy = self.line.copy(&self.at).map_err(fault_or_input)?;
        let touch = self.touches(&mut copy, Some(until))?.first().copied();
        Ok((touch, touch.map_or(until, |touch| touch.at)))
    }
}
