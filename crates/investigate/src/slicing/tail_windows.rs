//! The end of a recording alone, for questions whose chain ends there: windows are observed from the
//! last one back, twice as many each time, until nothing is looked for any more.
//!
//! That is sound where only values and addresses are followed: then what is found does not depend on
//! what came before, but for the numbers of executions, which are counted from the end. Control
//! depends on indirect jumps and calls seen anywhere. If a quarter of the windows does not do, all of
//! the recording is gone through instead.

use super::windows;
use crate::error::fault_or_input;
use analyze::dependence::Trace;
use base::Tick;
use events::Consumer;
use replay::{Instant, Timeline, Window};
use std::sync::{Arc, Mutex, PoisonError};

/// Stops at a quarter: of so many windows one is looked at.
const SHARE: usize = 4;

/// A stream, as it came.
type Stream = Arc<Mutex<Vec<Vec<u8>>>>;

/// The last windows of a recording.
pub struct TailWindows {
    /// Where windows begin, but for the first of all.
    starts: Vec<u64>,
    /// Where the last window ends, if not with the recording.
    end: Option<u64>,
    /// Streams of the windows that have been observed, the last window first.
    streams: Vec<Stream>,
}

impl TailWindows {
    /// None yet, of a timeline that has gone to its end.
    pub fn of(line: &Timeline) -> Self {
        let starts = line.checkpoints().filter(|time| *time > 0).collect();
        Self { starts, end: None, streams: Vec::new() }
    }

    /// The same of what was before a tick, that one included.
    pub fn until(line: &Timeline, tick: Tick) -> Self {
        let all = Self::of(line);
        let starts = all.starts.into_iter().filter(|time| *time <= tick.0).collect();
        Self { starts, end: Some(tick.0 + 1), ..all }
    }

    /// How many windows have been observed, and how many there are.
    pub fn observed(&self) -> (usize, usize) {
        (self.streams.len(), self.starts.len() + 1)
    }

    /// Goes back further, and gives what there is then; nothing if it would be too much.
    pub fn more(&mut self, line: &mut Timeline, memory: u64) -> anyhow::Result<Option<Trace>> {
        let (known, all) = self.observed();
        let count = (known * 2).max(1);
        if count > all / SHARE {
            return Ok(None);
        }
        self.observe(line, count, memory)
    }

    /// The same, up to all of the recording, with so many windows at first.
    pub fn further(
        &mut self,
        line: &mut Timeline,
        memory: u64,
        first: usize,
    ) -> anyhow::Result<Option<Trace>> {
        let (known, all) = self.observed();
        let count = (known * 2).max(first).min(all);
        if count == known { Ok(None) } else { self.observe(line, count, memory) }
    }

    /// Observes as many of the last windows; nothing if memory has no room for them.
    fn observe(
        &mut self,
        line: &mut Timeline,
        count: usize,
        memory: u64,
    ) -> anyhow::Result<Option<Trace>> {
        let mut fresh = Vec::new();
        let at = |number: Option<usize>| {
            let time = self.starts.get(number?).copied().or(self.end)?;
            Some(Instant { time, pc: None })
        };
        let last = self.starts.len();
        let windows = (self.streams.len()..count).map(|back| {
            let stream = Stream::default();
            fresh.push(stream.clone());
            let consumer = Box::new(windows::Keeping::of(stream));
            let (from, to) = (at((last - back).checked_sub(1)), at(Some(last - back)));
            Window { from, to, plan: windows::plan(), consumer }
        });
        let windows = windows.collect();
        line.observe_all(windows).map_err(fault_or_input)?;
        self.streams.extend(fresh);
        let first = match self.starts.len().checked_sub(self.streams.len()) {
            Some(first) => self.starts[first],
            None => line.begin().map_err(fault_or_input)?.at.time,
        };
        let trace = self.trace(Tick(first), self.streams.len() <= self.starts.len());
        Ok((trace.bytes() <= memory / 2).then_some(trace))
    }

    /// What the streams tell, from a tick on.
    fn trace(&self, first: Tick, is_tail: bool) -> Trace {
        let mut trace = Trace::default();
        trace.is_tail = is_tail;
        trace.begin_at(first);
        for stream in self.streams.iter().rev() {
            for bytes in &*stream.lock().unwrap_or_else(PoisonError::into_inner) {
                trace.records(bytes);
            }
            trace.end_window();
        }
        trace
    }
}
