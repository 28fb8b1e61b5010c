//! Moments that are kept to be gone back to. The executions of statements have the same numbers behind a rollback as
//! before: they are those of the recording.

use super::Debugger;
use crate::error::fault_or_input;
use anyhow::Context;
use base::Place;
use replay::Instant;

/// A moment that is kept.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Its number, from 1 on.
    pub id: u32,
    /// When.
    pub at: Instant,
    /// Whether it is the very end.
    pub ended: bool,
    /// Where.
    pub place: Place,
}

impl Debugger<'_> {
    /// Keeps this moment. Its number.
    pub fn checkpoint(&mut self) -> anyhow::Result<u32> {
        let kept = self.away.take();
        let place = self.place();
        self.away = kept;
        let id = self.checkpoints.last().map_or(1, |last| last.id + 1);
        let (at, ended) = (self.at.instant(), self.at.at.ended);
        self.checkpoints.push(Checkpoint { id, at, ended, place: place? });
        Ok(id)
    }

    /// The moments that are kept.
    pub fn checkpoints(&self) -> &[Checkpoint] {
        &self.checkpoints
    }

    /// Goes back to a moment that was kept.
    pub fn rollback(&mut self, id: u32) -> anyhow::Result<()> {
        let kept = self.kept(id)?.clone();
        self.leave_diversion();
        self.at = match kept.ended {
            true => self.line.seek_end().map_err(fault_or_input)?,
            false => self.line.seek(kept.at).map_err(fault_or_input)?,
        };
        Ok(())
    }

    /// Keeps a moment no longer.
    pub fn forget_checkpoint(&mut self, id: u32) -> anyhow::Result<()> {
        self.kept(id)?;
        self.checkpoints.retain(|kept| kept.id != id);
        Ok(())
    }

    fn kept(&self, id: u32) -> anyhow::Result<&Checkpoint> {
        let found = self.checkpoints.iter().find(|kept| kept.id == id);
        found.with_context(|| format!("there is no checkpoint {id}; `info checkpoints` lists them"))
    }
}
