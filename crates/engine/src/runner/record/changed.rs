//! Files that are mapped and that another process changes meanwhile, by a descriptor: a replay shows
//! what they were when they were mapped. Nothing tells of it in time; but it shows in the file's time
//! when the mapping goes, and then it is said.

use super::Recorder;
use crate::report::Message;
use crate::runner::report;
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Mappings of files that this process has.
#[derive(Default)]
pub struct Views(Vec<View>);

struct View {
    range: Range<u64>,
    path: PathBuf,
    file: (u64, u64),
    state: State,
}

/// What changes with the contents: length, and time in seconds and nanoseconds.
type State = (u64, i64, i64);

fn state(meta: &Metadata) -> State {
    (meta.len(), meta.mtime(), meta.mtime_nsec())
}

/// A file has been mapped. One that is written through its mapping is `tree`'s to follow.
pub fn mapped(recorder: &mut Recorder, range: Range<u64>, path: PathBuf, meta: &Metadata) {
    let file = (meta.dev(), meta.ino());
    recorder.views.0.push(View { range, path, file, state: state(meta) });
}

/// Mappings go.
pub fn unmapped(recorder: &mut Recorder, range: Range<u64>) {
    let touched = |view: &View| view.range.start < range.end && range.start < view.range.end;
    let (gone, kept) = std::mem::take(&mut recorder.views.0).into_iter().partition(touched);
    recorder.views.0 = kept;
    judge(recorder, gone);
}

/// All of them go.
pub fn ended(recorder: &mut Recorder) {
    let all = std::mem::take(&mut recorder.views.0);
    judge(recorder, all);
}

fn judge(recorder: &Recorder, mut views: Vec<View>) {
    // Libraries have several.
    views.dedup_by_key(|view| view.file);
    for View { path, file, state: before, .. } in views {
        let Ok(meta) = std::fs::metadata(&path) else { continue };
        let same = (meta.dev(), meta.ino()) == file;
        // What this process writes itself is in its log.
        if same && state(&meta) != before && !recorder.written.is_followed(file) {
            report::send(&Message::Note(format!(
                "{} was changed by another process while it was mapped: a replay shows what it \
                 was before",
                path.display()
            )));
        }
    }
}
