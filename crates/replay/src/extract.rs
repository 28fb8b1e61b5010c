//! Cuts a self-contained region out of a longer recording.

use crate::keep::Keeper;
use crate::record::RecordError;
use crate::session::Session;
use crate::timeline::Timeline;
use engine::control::{Goal, Instant};
use engine::report::LogOrigin;
use recording::{Meta, Region, Summary, Writer};
use std::path::Path;
use std::time::Instant as Clock;

/// Writes what a process does between two moments, or until its end, to a recording of its own.
/// Bytes of the file.
pub fn extract(
    session: &Session,
    line: &mut Timeline,
    (from, to): (Instant, Option<Instant>),
    path: &Path,
    replace: bool,
) -> Result<u64, RecordError> {
    let text = |at: &Instant| format!("@{}", at.time);
    let region = Region { from: text(&from), to: to.as_ref().map(text) };
    let meta = Meta { region: Some(region), ..session.recording().meta().clone() };
    let writer = if replace { Writer::replace(path, &meta)? } else { Writer::create(path, &meta)? };
    let keeper = Keeper::new(writer, meta.command.clone());
    let begun = Clock::now();
    let sink = keeper.begin(1, LogOrigin::Start);
    let goal = to.map_or(Goal::End, Goal::At);
    line.extract(from, goal, sink).map_err(RecordError::Run)?;
    finish(&keeper, session, begun)
}

/// Adds the contents of files that the logs refer to, and closes the file. Its bytes.
pub(crate) fn finish(keeper: &Keeper, session: &Session, begun: Clock) -> Result<u64, RecordError> {
    let old = session.recording();
    let mut kept = keeper.lock();
    let mut writer = kept.writer.take().ok_or(recording::WriteError::Failed)?;
    for key in &kept.files {
        if let Some(id) = old.labelled(*key)
            && let Ok(contents) = old.blob(id)
        {
            let id = writer.blob(&contents)?;
            writer.label(id, *key)?;
        }
    }
    let summary = Summary {
        duration: begun.elapsed().as_nanos() as u64,
        processes: kept.processes.clone(),
        stopped: kept.failure.clone(),
        notes: Vec::new(),
        events: 0,
    };
    let file = writer.finish(&summary)?;
    Ok(file.metadata().map_or(0, |meta| meta.len()))
}
