//! The steps of an execution slice, as its log lists them.

use engine::control::Instant;
use recording::log::{Entry, entries};
use recording::{ReadError, Recording};

/// A stretch of the slice, and what was put in place before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptStretch {
    /// Its thread.
    pub thread: i32,
    /// Its first instruction.
    pub start: Instant,
    /// The instruction after its last; the last step, which is what was asked about, has none.
    pub end: Option<Instant>,
    /// Instructions that were left out before it.
    pub skipped: u64,
    /// Memory that these changed: address and bytes.
    pub injected: Vec<(u64, u64)>,
}

/// The steps of a recording that is an execution slice.
pub fn steps(recording: &Recording) -> Result<Vec<KeptStretch>, ReadError> {
    let mut steps: Vec<KeptStretch> = Vec::new();
    for (entry, _) in entries(recording.log(0)?) {
        let step = match entry {
            Entry::Image(image) => {
                let running = image.threads.iter().find(|thread| thread.number == image.running);
                let pc = running.map(|thread| thread.pc);
                let start = Instant { time: image.time, pc };
                let (thread, skipped) = (image.running, 0);
                KeptStretch { thread, start, end: None, skipped, injected: Vec::new() }
            }
            Entry::Skip(skip) => {
                if let Some(last) = steps.last_mut() {
                    last.end = Some(Instant { time: skip.at.time, pc: Some(skip.at.pc) });
                }
                let start = Instant { time: skip.time, pc: Some(skip.thread.pc) };
                let (thread, skipped) = (skip.thread.number, skip.instructions);
                KeptStretch { thread, start, end: None, skipped, injected: skip.writes }
            }
            _ => continue,
        };
        steps.push(step);
    }
    Ok(steps)
}
