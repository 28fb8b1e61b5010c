//! Saves a slice as a recording of its own, to be stepped through.

use super::execution::{Execution, failed, recording_of};
use crate::commands::run::{Guest, fault_or_input};
use crate::render;
use analyze::slice::ending::Asked;
use analyze::slice::view::has_source;
use analyze::slice::{Slice, What};
use anyhow::{Context, bail};
use engine::host::Record as How;
use replay::slices::{Kept, SaveError, save};
use replay::{RecordError, Session};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The recording that a slice is taken from: one that is there, or one made for the purpose.
pub struct Source {
    file: PathBuf,
    _folder: Option<TempDir>,
}

impl Source {
    /// Finds the recording, or makes one.
    pub fn of(guest: &Guest) -> anyhow::Result<Self> {
        if let Some(file) = recording_of(guest) {
            return Ok(Self { file: file.into(), _folder: None });
        }
        let folder = tempfile::tempdir().context("no folder for a recording")?;
        let file = folder.path().join("recording");
        let mut job = guest.job();
        job.record = Some(How::default());
        match replay::record(&job, &file, false) {
            Ok(recorded) => recorded.outcome.notes.iter().for_each(|note| render::note(note)),
            Err(RecordError::Run(error)) => return Err(fault_or_input(error)),
            Err(RecordError::Write(error)) => bail!("{}: {error}", file.display()),
        }
        Ok(Self { file, _folder: Some(folder) })
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Saves a slice of it.
    pub fn save(
        &self,
        execution: &Execution,
        (asked, answer): (&Asked, &Slice),
        to: &Path,
        force: bool,
    ) -> anyhow::Result<()> {
        let session = Session::open(&self.file)
            .with_context(|| format!("{} cannot be replayed", self.file.display()))?;
        let mut line = session.timeline(failed(session.recording())).map_err(fault_or_input)?;
        let kept = kept(execution, asked, answer);
        let saved = match save(&session, &mut line, kept, to, force) {
            Ok(saved) => saved,
            Err(SaveError::Nothing) => bail!(
                "no statement of the program itself is in the slice, so there is nothing to step \
                 through; try another --value or --kind full"
            ),
            Err(SaveError::Record(RecordError::Run(error))) => return Err(fault_or_input(error)),
            Err(SaveError::Record(RecordError::Write(error))) => {
                bail!("{}: {error}", to.display())
            }
        };
        render::note(&format!(
            "saved {} steps to {} ({} bytes): {} instructions are replayed, {} left out, of which \
             {} bytes of memory are put in place; step through it with whydunit step {}",
            saved.stretches,
            to.display(),
            saved.size,
            saved.kept,
            saved.skipped,
            saved.injected,
            to.display()
        ));
        Ok(())
    }
}

/// The executions of a slice that are of the program's own statements; of a program without any
/// source, all.
fn kept(execution: &Execution, asked: &Asked, answer: &Slice) -> Kept {
    let trace = &execution.trace;
    let pc = |instruction: u32| trace.blocks.statics[instruction as usize].pc;
    let executed = answer.nodes.iter().filter(|node| node.what == What::Executed);
    let executed = executed.filter_map(|node| Some((node.moment.0, pc(node.instruction?))));
    let all: Vec<(u64, u64)> = executed.collect();
    let any = all.iter().any(|(_, pc)| has_source(&execution.program, *pc));
    let mut lines: HashMap<(String, u32), u32> = HashMap::new();
    let mut statement = |pc: u64| {
        if !any {
            return Some(pc as u32);
        }
        let line = execution.program.line_at(base::Address(pc))?.line;
        let next = lines.len() as u32;
        let own = has_source(&execution.program, pc);
        own.then(|| *lines.entry((line.file, line.line)).or_insert(next))
    };
    let statics = trace.blocks.statics.iter();
    let statements = statics.filter_map(|known| Some((known.pc, statement(known.pc)?))).collect();
    let mut moments: Vec<u64> = all.into_iter().map(|(moment, _)| moment).collect();
    moments.sort_unstable();
    moments.dedup();
    // A slice that goes forward ends with what came last.
    let until = asked.moment.0.max(moments.last().map_or(0, |last| last + 1));
    Kept { moments, statements, until, from: None, about: asked.words.clone() }
}
