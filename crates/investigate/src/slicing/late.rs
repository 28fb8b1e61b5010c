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
use symbols::Program;

/// Stops at a quarter: of so many windows one is looked at.
const SHARE: usize = 4;

/// A stream, as it came.
type Stream = Arc<Mutex<Vec<Vec<u8>>>>;

/// The last windows of a recording.
pub struct Late {
    /// Where windows begin, but for the first of all.
    starts: Vec<u64>,
    /// Streams of the windows that have been observed, the last window first.
    streams: Vec<Stream>,
}

impl Late {
    /// None yet, of a timeline that has gone to its end.
    pub fn of(line: &Timeline) -> Self {
        let starts = line.checkpoints().filter(|time| *time > 0).collect();
        Self { starts, streams: Vec::new() }
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
        let mut fresh = Vec::new();
        let windows = (known..count).map(|back| {
            let stream = Stream::default();
            fresh.push(stream.clone());
            let at =
                |index: usize| self.starts.get(index).map(|time| Instant { time: *time, pc: None });
            let first = self.starts.len() - 1 - back;
            let consumer = Box::new(windows::Keeping::of(stream));
            Window { from: at(first), to: at(first + 1), plan: windows::plan(), consumer }
        });
        let windows = windows.collect();
        line.observe_all(windows).map_err(fault_or_input)?;
        self.streams.extend(fresh);
        let mut trace = Trace::default();
        trace.starts_late = true;
        let first = self.starts[self.starts.len() - self.streams.len()];
        trace.begin_at(Tick(first));
        for stream in self.streams.iter().rev() {
            for bytes in &*stream.lock().unwrap_or_else(PoisonError::into_inner) {
                trace.records(bytes);
            }
            trace.end_window();
        }
        Ok((trace.bytes() <= memory / 2).then_some(trace))
    }
}

/// Memory that no program can have written to: what stands there was made by nobody.
pub fn constants(program: &Program) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for module in program.modules() {
        let Some(image) = module.module().map(|module| module.image()) else { continue };
        let constant = image.segments().iter().filter(|segment| !segment.writable);
        found.extend(constant.map(|s| (s.address.0.wrapping_add(module.bias()), s.size)));
    }
    found
}
