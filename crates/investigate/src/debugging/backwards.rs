//! Backwards: the last instruction of a thread, breakpoint or access to watched memory before the present,
//! looked for in windows that grow as they get older.

use super::executed::Executed;
use super::watching::Touch;
use super::{Debugger, Patience, Stop};
use crate::error::fault_or_input;
use base::ThreadNumber;
use events::Plan;
use events::plan::Execution;
use replay::{Instant, StoppedProcess};

/// How much longer each window is than the one before it in the search.
const GROWTH: u64 = 8;

/// Ticks of the first window that is searched for breakpoints and accesses.
const FIRST_WINDOW: u64 = 1 << 14;

/// Longest window, so that it is asked now and then whether to go on.
const LONGEST_WINDOW: u64 = 1 << 27;

impl Debugger<'_> {
    /// Goes back to the instruction that a thread executed last.
    pub fn step_back(&mut self, thread: ThreadNumber) -> anyhow::Result<Stop> {
        if self.leave_diversion() {
            return Ok(Stop::Moved);
        }
        let number = self.kernel_number(thread)?;
        let mut end = self.at.instant();
        let (mut from, mut length) = (end.time, 1);
        loop {
            let mut standing = self.standing_at(from)?;
            if standing.instant() != end {
                let executed = Executed::by(number);
                let plan = Plan::observing(Execution::Blocks);
                // The present may be the very end, behind which there is no instruction.
                let to = (!self.at.at.ended || end != self.at.instant()).then_some(end);
                self.line
                    .observe_on(&mut standing, to, plan, Box::new(executed.clone()))
                    .map_err(fault_or_input)?;
                let pcs = executed.pcs();
                if let Some(last) = pcs.last() {
                    let times = pcs.iter().filter(|pc| *pc == last).count() as u64;
                    self.go_to_execution(from, number, (*last, times))?;
                    return Ok(Stop::Moved);
                }
            }
            if from == 0 {
                return Ok(Stop::Beginning);
            }
            end = Instant { time: from, pc: None };
            from = from.saturating_sub(length);
            length *= GROWTH;
        }
    }

    /// Goes back to the last breakpoint, access to watched memory or moment to stop at, or to the beginning. From a
    /// diversion it goes back to where the recording was left.
    pub fn resume_back(&mut self, patience: Patience<'_>) -> anyhow::Result<Stop> {
        if self.leave_diversion() {
            return Ok(Stop::Moved);
        }
        let bound = self.previous_point()?;
        let mut end = (!self.at.at.ended).then(|| self.at.instant());
        let mut from = self.at.at.time;
        let mut length = FIRST_WINDOW;
        let (present, held) = (self.at.instant(), self.held(&self.at));
        loop {
            if patience() {
                return Ok(Stop::Interrupted);
            }
            let stop = self.last_in_window(from, end)?;
            let since = self.behind(&stop, from)?;
            let before = self.held(&since);
            if before != held {
                let end = end.unwrap_or(present);
                return self.go_to_change((since.instant(), end), &before, false);
            }
            if let Some((stop, standing)) = stop {
                return self.later_of(stop, standing, bound);
            }
            if let Some(bound) = bound.filter(|bound| from <= bound.time) {
                return self.stand_at_point(bound);
            }
            if from == 0 {
                self.at = self.line.begin().map_err(fault_or_input)?;
                return Ok(Stop::Beginning);
            }
            end = Some(Instant { time: from, pc: None });
            from = from.saturating_sub(length);
            length = (length * GROWTH).min(LONGEST_WINDOW);
        }
    }

    /// The later of a stop that was found and a moment to stop at.
    fn later_of(
        &mut self,
        stop: Stop,
        standing: StoppedProcess,
        bound: Option<Instant>,
    ) -> anyhow::Result<Stop> {
        if let Some(bound) = bound
            && self.comes_before(&standing, bound)?
        {
            return self.stand_at_point(bound);
        }
        self.at = standing;
        Ok(stop)
    }

    fn stand_at_point(&mut self, at: Instant) -> anyhow::Result<Stop> {
        self.at = self.line.seek(at).map_err(fault_or_input)?;
        Ok(self.reason_at(&self.at).map_or(Stop::Moved, Stop::Point))
    }

    /// The earliest moment from which on no instruction writes watched memory: behind the write that was found,
    /// or the beginning of the window.
    fn behind(
        &mut self,
        found: &Option<(Stop, StoppedProcess)>,
        from: u64,
    ) -> anyhow::Result<StoppedProcess> {
        let Some((stop, standing)) = found else { return self.standing_at(from) };
        let mut behind = self.line.copy(standing).map_err(fault_or_input)?;
        if matches!(stop, Stop::Watched(_)) {
            std::mem::swap(&mut self.at, &mut behind);
            let stepped = self.step(self.running());
            std::mem::swap(&mut self.at, &mut behind);
            stepped?;
        }
        Ok(behind)
    }

    /// The last stop from a time to a moment, and a process that stands there, if there is one.
    fn last_in_window(
        &mut self,
        from: u64,
        end: Option<Instant>,
    ) -> anyhow::Result<Option<(Stop, StoppedProcess)>> {
        let touch = self.last_touch(from, end)?;
        let hit = self.last_hit(from, end)?;
        let stop = match (touch, hit) {
            (None, None) => return Ok(None),
            (None, Some(hit)) => hit,
            (Some(touch), None) => self.before_touch(touch)?,
            (Some(touch), Some(hit)) => {
                if self.comes_before(&hit.1, touch.at)? {
                    self.before_touch(touch)?
                } else {
                    hit
                }
            }
        };
        Ok(Some(stop))
    }

    fn before_touch(&mut self, touch: Touch) -> anyhow::Result<(Stop, StoppedProcess)> {
        let standing = self.line.seek(touch.at).map_err(fault_or_input)?;
        Ok((Stop::Watched(touch.watched), standing))
    }

    fn last_touch(&mut self, from: u64, end: Option<Instant>) -> anyhow::Result<Option<Touch>> {
        if self.watches.is_empty() {
            return Ok(None);
        }
        let mut standing = self.standing_at(from)?;
        if Some(standing.instant()) == end {
            return Ok(None);
        }
        Ok(self.touches(&mut standing, end)?.last().copied())
    }

    fn last_hit(
        &mut self,
        from: u64,
        end: Option<Instant>,
    ) -> anyhow::Result<Option<(Stop, StoppedProcess)>> {
        let pcs = self.stopping();
        if pcs.is_empty() {
            return Ok(None);
        }
        let mut standing = self.standing_at(from)?;
        if Some(standing.instant()) == end {
            return Ok(None);
        }
        if !self.conditional.is_empty() {
            return self.last_that_holds(standing, &pcs, end);
        }
        let first = self.line.copy(&standing).map_err(fault_or_input)?;
        let filters = self.filters();
        let places = (&pcs[..], &filters[..]);
        self.line.go_on_to_hit_if(&mut standing, places, 0, end).map_err(fault_or_input)?;
        let hits = standing.at.hits;
        let mut last = first;
        if hits == 0 {
            let meets = self.breaks_at(&last);
            return Ok(meets.then_some((Stop::Breakpoint, last)));
        }
        self.line.go_on_to_hit_if(&mut last, places, hits, end).map_err(fault_or_input)?;
        Ok(Some((Stop::Breakpoint, last)))
    }

    /// The last stop of breakpoints of which some have conditions.
    fn last_that_holds(
        &mut self,
        mut standing: StoppedProcess,
        pcs: &[u64],
        end: Option<Instant>,
    ) -> anyhow::Result<Option<(Stop, StoppedProcess)>> {
        let (mut last, filters) = (None, self.filters());
        let mut meets = pcs.contains(&standing.at.thread.pc);
        loop {
            if meets && let Some((stop, call)) = self.decide(&standing)? {
                last = Some((stop, call.unwrap_or_else(|| standing.instant())));
            }
            self.line
                .go_on_to_hit_if(&mut standing, (pcs, &filters), 1, end)
                .map_err(fault_or_input)?;
            meets = standing.at.hits == 1;
            if !meets || standing.at.ended {
                break;
            }
        }
        let Some((stop, at)) = last else { return Ok(None) };
        Ok(Some((stop, self.line.seek(at).map_err(fault_or_input)?)))
    }

    /// Whether a process stands before a moment.
    pub(super) fn comes_before(
        &mut self,
        standing: &StoppedProcess,
        moment: Instant,
    ) -> anyhow::Result<bool> {
        let here = standing.instant();
        if here.time != moment.time || here == moment {
            return Ok(here.time < moment.time);
        }
        let mut copy = self.line.copy(standing).map_err(fault_or_input)?;
        self.line.go_on(&mut copy, Some(moment)).map_err(fault_or_input)?;
        Ok(copy.instant() == moment)
    }
}
