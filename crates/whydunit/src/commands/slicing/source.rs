//! The recording that a question is about: one that is there, or one made for the purpose.

use crate::commands::run::{Guest, fault_or_input};
use crate::render;
use anyhow::{Context, bail};
use engine::host::Record as How;
use recording::Recording;
use replay::RecordError;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A recording; one that was made here goes away with it.
pub struct Source {
    file: PathBuf,
    _folder: Option<TempDir>,
}

impl Source {
    /// Finds the recording, or makes one.
    pub fn of(guest: &Guest) -> anyhow::Result<Self> {
        if let [only] = guest.command()
            && Recording::open(Path::new(only)).is_ok()
        {
            return Ok(Self { file: only.into(), _folder: None });
        }
        let folder = tempfile::tempdir().context("no folder for a recording")?;
        let file = folder.path().join("recording");
        let mut job = guest.job();
        job.record = Some(How::default());
        match replay::record(&job, &file, false) {
            Ok(recorded) => {
                recorded.outcome.notes.iter().for_each(|note| render::note(note));
                if let Some(why) = recorded.outcome.refused {
                    bail!(
                        "cannot be recorded any further: {why}; to ask about what came before: \
                         `whydunit record -o FILE`, then ask about FILE"
                    );
                }
            }
            Err(RecordError::Run(error)) => return Err(fault_or_input(error)),
            Err(RecordError::Write(error)) => bail!("{}: {error}", file.display()),
        }
        Ok(Self { file, _folder: Some(folder) })
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}
