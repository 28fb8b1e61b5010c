//! What the log and the rules say happened, as moments to stop at: signals that are handled, threads that begin,
//! findings.

use super::Debugger;
use super::points::{Point, Reason};
use crate::check::{Choice, recorded};
use base::{Finding, Tick};
use recording::log::{Entry, entries};
use replay::Instant;
use std::collections::HashSet;

impl Debugger<'_> {
    /// Stops where signals come to threads that handle them. How many there are.
    pub fn stop_at_signals(&mut self) -> anyhow::Result<usize> {
        self.all_signals = true;
        self.stop_at_some_signals(|_| true)
    }

    /// Stops where some signals come, in place of those that a client wanted to hear of before.
    pub fn hear_signals(&mut self, heard: impl Fn(i32) -> bool) -> anyhow::Result<()> {
        if !self.all_signals {
            self.remove_points(|reason| matches!(reason, Reason::Signal(_)));
            self.stop_at_some_signals(heard)?;
        }
        Ok(())
    }

    fn stop_at_some_signals(&mut self, wanted: impl Fn(i32) -> bool) -> anyhow::Result<usize> {
        let log = entries(self.case.recording().log(self.process)?);
        let signal = |entry: Entry| match entry {
            Entry::Signal { at, info } => {
                let number = info.raw.get(..4).and_then(|raw| raw.try_into().ok());
                let number = number.map_or(0, i32::from_le_bytes);
                let at = Instant { time: at.time, pc: Some(at.pc) };
                wanted(number).then_some(Point { at, reason: Reason::Signal(number) })
            }
            _ => None,
        };
        let found: Vec<Point> = log.filter_map(|(entry, _)| signal(entry)).collect();
        let count = found.len();
        self.add_points(found);
        Ok(count)
    }

    /// Stops where threads begin. How many there are, but for the first.
    pub fn stop_at_threads(&mut self) -> anyhow::Result<usize> {
        let log = entries(self.case.recording().log(self.process)?);
        let mut known =
            HashSet::from([self.numbers.kernel(base::ThreadNumber::FIRST).unwrap_or(0)]);
        let mut found = Vec::new();
        for (entry, _) in log {
            if let Entry::Switch { thread, time } = entry
                && known.insert(thread)
            {
                let reason = Reason::Begins(self.numbers.number(thread, Tick(time)));
                let at = Instant { time, pc: self.first_instruction(thread, time)? };
                found.push(Point { at, reason });
            }
        }
        let count = found.len();
        self.add_points(found);
        Ok(count)
    }

    /// The instruction that a thread begins with at a tick, if it does not begin the tick.
    fn first_instruction(&mut self, thread: i32, time: u64) -> anyhow::Result<Option<u64>> {
        let standing = self.standing_at(time)?;
        if standing.at.thread.number == thread {
            return Ok(Some(standing.at.thread.pc));
        }
        let executed = super::executed::Executed::by(thread);
        let mut copy = standing;
        let to = Instant { time: time + 1, pc: None };
        let plan = events::Plan::observing(events::plan::Execution::Blocks);
        self.line
            .observe_on(&mut copy, Some(to), plan, Box::new(executed.clone()))
            .map_err(crate::error::fault_or_input)?;
        Ok(executed.pcs().first().copied())
    }

    /// What the default rules find in this process, the first finding first. Asked once.
    pub fn findings(&mut self) -> anyhow::Result<&[Finding]> {
        if self.found.is_none() {
            let chosen = Choice::default().read()?;
            let (session, notices) = (self.case.session(), self.case.notices());
            let found = recorded::check(session, self.process, &chosen, notices)?;
            self.found = Some(found.findings());
        }
        Ok(self.found.as_deref().unwrap_or_default())
    }

    /// Stops at findings. How many have a moment.
    pub fn stop_at_findings(&mut self) -> anyhow::Result<usize> {
        let process = base::ProcessNumber(self.process);
        let found = self.findings()?.iter().enumerate().filter_map(|(index, finding)| {
            let when = finding.when.filter(|when| when.process == process)?;
            let at = Instant { time: when.position.tick.0, pc: Some(when.position.pc.0) };
            Some(Point { at, reason: Reason::Finding(index + 1) })
        });
        let found: Vec<Point> = found.collect();
        let count = found.len();
        self.add_points(found);
        Ok(count)
    }
}
