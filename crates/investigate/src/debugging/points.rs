//! Exact moments to stop at: executions in a slice, findings, signals, threads that begin, and where something is
//! altered. They are known before one comes to them, so the nearest is looked up, and bounds every movement.
//!
//! At one tick several can lie; which comes first, only the process itself tells.

use super::Debugger;
use crate::error::fault_or_input;
use base::ThreadNumber;
use replay::{Instant, StoppedProcess};
use std::collections::BTreeSet;

/// Why a moment is one to stop at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An execution in a slice: the number of the slice, and of the statement in it, both from 1 on.
    Slice {
        /// The slice.
        slice: u32,
        /// The statement.
        statement: usize,
    },
    /// A finding, by its number from 1 on.
    Finding(usize),
    /// A signal comes to a thread that handles it.
    Signal(i32),
    /// A thread begins.
    Begins(ThreadNumber),
    /// The recording is left here, altered.
    Altered,
}

/// A moment to stop at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// When; always with an instruction, but for where a thread begins.
    pub at: Instant,
    /// Why.
    pub reason: Reason,
}

impl Debugger<'_> {
    /// Stops at moments from now on.
    pub fn add_points(&mut self, points: impl IntoIterator<Item = Point>) {
        self.points.extend(points);
        self.points.sort_by_key(|point| point.at);
        self.points.dedup();
    }

    /// No longer stops for some reasons.
    pub fn remove_points(&mut self, gone: impl Fn(&Reason) -> bool) {
        self.points.retain(|point| !gone(&point.reason));
    }

    /// The moments that it stops at.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Why one would stop where a process stands.
    pub(super) fn reason_at(&self, standing: &StoppedProcess) -> Option<Reason> {
        let here = standing.instant();
        let is_here = |point: &&Point| {
            point.at.time == here.time && point.at.pc.is_none_or(|pc| Some(pc) == here.pc)
        };
        // What alters the run comes before what only stops it.
        let all = || self.points.iter().filter(is_here);
        let altered = all().find(|point| point.reason == Reason::Altered);
        altered.or_else(|| all().next()).map(|point| point.reason.clone())
    }

    /// The next moment to stop at.
    pub(super) fn next_point(&mut self) -> anyhow::Result<Option<Instant>> {
        let all = self.points.iter().map(|point| point.at).collect();
        self.next_of(&all)
    }

    /// The last moment to stop at before the present.
    pub(super) fn previous_point(&mut self) -> anyhow::Result<Option<Instant>> {
        let all = self.points.iter().map(|point| point.at).collect();
        self.previous_of(&all)
    }

    /// The first of some moments that comes behind the present.
    pub fn next_of(&mut self, all: &BTreeSet<Instant>) -> anyhow::Result<Option<Instant>> {
        let now = self.at.instant();
        if self.at.at.ended {
            return Ok(None);
        }
        let here = at_time(all, now.time);
        if !here.is_empty() {
            let mut copy = self.line.copy(&self.at).map_err(fault_or_input)?;
            if let Some(met) = self.meet(&mut copy, &here)? {
                return Ok(Some(met));
            }
        }
        let mut later = all.range(Instant { time: now.time + 1, pc: None }..).peekable();
        let Some(first) = later.peek().copied().copied() else { return Ok(None) };
        let there = at_time(all, first.time);
        if there.len() == 1 {
            return Ok(Some(first));
        }
        Ok(self.in_order(first.time, &there)?.first().copied().or(Some(first)))
    }

    /// The last of some moments that comes before the present.
    pub fn previous_of(&mut self, all: &BTreeSet<Instant>) -> anyhow::Result<Option<Instant>> {
        let now = self.at.instant();
        let here = at_time(all, now.time);
        if !here.is_empty() {
            let order = self.in_order(now.time, &here)?;
            let order = if self.at.at.ended { order } else { self.before_present(order)? };
            if let Some(last) = order.last() {
                return Ok(Some(*last));
            }
        }
        let Some(last) = all.range(..Instant { time: now.time, pc: None }).next_back().copied()
        else {
            return Ok(None);
        };
        let there = at_time(all, last.time);
        if there.len() == 1 {
            return Ok(Some(last));
        }
        Ok(self.in_order(last.time, &there)?.last().copied().or(Some(last)))
    }

    /// Those of some moments of this tick, in order, that come before the present.
    fn before_present(&mut self, order: Vec<Instant>) -> anyhow::Result<Vec<Instant>> {
        let now = self.at.instant();
        let mut before = Vec::new();
        for moment in order {
            if moment == now {
                break;
            }
            let there = self.line.seek(moment).map_err(fault_or_input)?;
            if there.instant() == now || !self.comes_before(&there, now)? {
                break;
            }
            before.push(moment);
        }
        Ok(before)
    }

    /// Some moments of one tick, in the order in which they come.
    fn in_order(&mut self, time: u64, all: &[Instant]) -> anyhow::Result<Vec<Instant>> {
        let mut standing = self.standing_at(time)?;
        let mut order = Vec::new();
        let first = standing.instant();
        if all.contains(&first) || all.contains(&Instant { time, pc: None }) {
            order.push(first);
        }
        while let Some(met) = self.meet(&mut standing, all)? {
            order.push(met);
        }
        Ok(order)
    }

    /// Goes on to the next of some moments of the tick at which a process stands.
    fn meet(
        &mut self,
        from: &mut StoppedProcess,
        all: &[Instant],
    ) -> anyhow::Result<Option<Instant>> {
        let time = from.at.time;
        let pcs: Vec<u64> = all.iter().filter_map(|moment| moment.pc).collect();
        if pcs.is_empty() {
            return Ok(None);
        }
        let end = Instant { time: time + 1, pc: None };
        self.line.go_on_to_hit(from, (&pcs, None), 1, Some(end)).map_err(fault_or_input)?;
        let met = from.at.hits == 1 && from.at.time == time;
        Ok(met.then(|| from.instant()))
    }
}

/// Those of some moments that lie at a tick.
fn at_time(all: &BTreeSet<Instant>, time: u64) -> Vec<Instant> {
    let ticks = Instant { time, pc: None }..Instant { time: time + 1, pc: None };
    all.range(ticks).copied().collect()
}
