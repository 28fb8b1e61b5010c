//! A recording in windows: all of it is gone through once, and what memory has no room for is
//! replayed again where a question leads there.
//!
//! Windows lie between the checkpoints that the first replay left, so that each can be come to
//! without replaying what is before it. One that would take more than a quarter of what may be kept
//! is cut further.

use crate::error::fault_or_input;
use analyze::dependence::Trace;
use analyze::dependence::trace::Past;
use base::Tick;
use events::plan::Syscalls;
use events::{Consumer, Plan};
use replay::{Instant, Timeline};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a run that are kept if nobody says otherwise.
pub const MEMORY: u64 = 2 << 30;
/// Ticks between checkpoints at first: some tens of millions of instructions.
const SPACING: u64 = 2_000_000;
/// No window is shorter, in ticks.
const SHORTEST: u64 = 10_000;

/// Where a window begins and ends; none is the beginning or end of the run.
type Bounds = (Option<Instant>, Option<Instant>);

/// What is observed to follow dependences.
pub fn plan() -> Plan {
    Plan::everything().with_syscalls(Syscalls::Ranges)
}

/// Sets up a timeline so that it leaves checkpoints where windows can begin.
pub fn prepare(line: &mut Timeline) {
    line.space_checkpoints(SPACING);
}

/// The replay that windows come from.
struct Recorded {
    line: Timeline,
    windows: Vec<Bounds>,
}

/// The same, as the trace knows it.
struct Again(Arc<Mutex<Recorded>>);

impl Past for Again {
    fn again(&mut self, window: usize) -> Result<Vec<Vec<u8>>, String> {
        let mut recorded = lock(&self.0);
        let (from, to) = recorded.windows[window];
        let stream = Arc::new(Mutex::new(Vec::new()));
        let consumer = Box::new(Keeping(stream.clone()));
        let done = recorded.line.observe(from, to, plan(), consumer);
        done.map_err(|error| error.to_string())?;
        Ok(std::mem::take(&mut *lock(&stream)))
    }
}

/// Keeps a stream as it comes.
pub struct Keeping(Arc<Mutex<Vec<Vec<u8>>>>);

impl Keeping {
    /// Keeps it there.
    pub fn of(stream: Arc<Mutex<Vec<Vec<u8>>>>) -> Self {
        Self(stream)
    }
}

impl Consumer for Keeping {
    fn records(&mut self, bytes: &[u8]) {
        lock(&self.0).push(bytes.to_vec());
    }
}

/// Hands a stream on to a trace that goes on when the stream has ended.
struct Feeding(Arc<Mutex<Trace>>);

impl Consumer for Feeding {
    fn records(&mut self, bytes: &[u8]) {
        lock(&self.0).records(bytes);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Goes through a run whose end is known, and keeps at most so many bytes of it.
pub fn survey(line: Timeline, memory: u64) -> anyhow::Result<Trace> {
    let mut starts: Vec<u64> = line.checkpoints().filter(|time| *time > 0).collect();
    starts.reverse();
    let recorded = Arc::new(Mutex::new(Recorded { line, windows: Vec::new() }));
    let past = Box::new(Again(recorded.clone()));
    let begins = lock(&recorded).line.begin().map_err(fault_or_input)?.at.time;
    let mut trace = Trace::windowed(memory, past);
    trace.begin_at(Tick(begins));
    let trace = Arc::new(Mutex::new(trace));
    let (mut from, mut step) = (0, u64::MAX);
    loop {
        let checkpoint = loop {
            match starts.last() {
                Some(time) if *time <= from => starts.pop(),
                other => break other.copied(),
            };
        };
        let mut recorded = lock(&recorded);
        let end = recorded.line.end().map_err(fault_or_input)?.time;
        let to = checkpoint.unwrap_or(u64::MAX).min(u64::saturating_add(from, step));
        let to = (to < end).then_some(Instant { time: to, pc: None });
        let start = (from > 0).then_some(Instant { time: from, pc: None });
        let before = lock(&trace).bytes();
        let consumer = Box::new(Feeding(trace.clone()));
        recorded.line.observe(start, to, plan(), consumer).map_err(fault_or_input)?;
        recorded.windows.push((start, to));
        let mut trace = lock(&trace);
        trace.end_window();
        let Some(to) = to else { return Ok(std::mem::take(&mut *trace)) };
        let (bytes, ticks) = (trace.bytes() - before, to.time - from);
        if bytes > memory / 4 {
            step = (memory / 4).saturating_mul(ticks) / bytes;
            step = step.max(SHORTEST);
        }
        from = to.time;
    }
}

/// A number of bytes, such as `512M`.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size such as 512M or 4G");
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1u64 << 30,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("4GiB"), Ok(4 << 30));
        for wrong in ["", "M", "0", "-1", "1T", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
