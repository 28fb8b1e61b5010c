//! Saves the events of a run to a file.

use crate::render;
use anyhow::Context;
use events::Consumer;
use events::file::Writer;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The events of the first process, on their way to a file.
pub struct Saving {
    path: PathBuf,
    writer: Arc<Mutex<Writer<BufWriter<File>>>>,
}

impl Saving {
    /// Opens the file.
    pub fn to(path: &Path, emits: bool) -> anyhow::Result<Self> {
        if !emits {
            anyhow::bail!(
                "--save-events has nothing to save; add `--observe memory` or `--observe blocks`"
            );
        }
        let writer = Writer::new(BufWriter::new(render::create(path)?))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), writer: Arc::new(Mutex::new(writer)) })
    }

    /// What passes events on to it.
    pub fn consumer(&self) -> Save {
        Save(self.writer.clone())
    }

    /// Says whether all of it was written.
    pub fn finish(self) -> anyhow::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        match writer.error.take() {
            Some(error) => Err(error).with_context(|| {
                format!("cannot write {}; the events there are not complete", self.path.display())
            }),
            None => Ok(()),
        }
    }
}

/// Passes events on to a file.
pub struct Save(Arc<Mutex<Writer<BufWriter<File>>>>);

impl Consumer for Save {
    fn records(&mut self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).records(bytes);
    }

    fn end(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).end();
    }
}
