//! Watched memory that changes though no instruction writes it: the kernel does, in a system call, or another process
//! that shares it. No access tells of that, so what the memory holds is compared, and the moment of the change found by
//! halving the time in question.

use super::watching::{Watch, Watched};
use super::{Debugger, Stop};
use crate::error::fault_or_input;
use replay::{Instant, StoppedProcess};

/// What all memory held that is watched for writes.
pub(super) type Held = Vec<(Watch, Vec<u8>)>;

impl Debugger<'_> {
    /// What watched memory holds where a process stands.
    pub(super) fn held(&self, standing: &StoppedProcess) -> Held {
        let written = self.watches.iter().filter(|watch| watch.writes);
        let bytes = written.map(|watch| {
            let mut bytes = vec![0; watch.size as usize];
            let there = standing.read(watch.address, &mut bytes);
            bytes.truncate(there);
            (*watch, bytes)
        });
        bytes.collect()
    }

    /// Goes to the change between two moments at the first of which memory held something else than at the
    /// second, to behind it or before it. No instruction writes it in between.
    pub(super) fn go_to_change(
        &mut self,
        (begin, end): (Instant, Instant),
        before: &Held,
        behind: bool,
    ) -> anyhow::Result<Stop> {
        let (mut low, mut high) = (begin.time, end.time);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let standing = self.standing_at(middle)?;
            if self.held(&standing) == *before { low = middle } else { high = middle }
        }
        self.at = match low == begin.time {
            true => self.line.seek(begin).map_err(fault_or_input)?,
            false => self.standing_at(low)?,
        };
        loop {
            let last = self.at.instant();
            let thread = self.running();
            let stop = self.step(thread)?;
            let now = self.held(&self.at);
            let changed = now.iter().zip(before).find(|(now, before)| now != before);
            if let Some(((watch, _), _)) = changed {
                if !behind {
                    self.at = self.line.seek(last).map_err(fault_or_input)?;
                }
                return Ok(Stop::Watched(Watched { watch: *watch, write: true }));
            }
            if stop != Stop::Moved {
                return Ok(stop);
            }
        }
    }
}
