//! Files of a recorded program that are not what they were: gone, or built anew since. A recording has
//! the contents of what the program mapped, so its names and lines can still be had.

use crate::notices::Notices;
use anyhow::Context;
use base::ModuleMap;
use recording::log::{Entry, FileView, entries};
use recording::{BlobId, Recording};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// Files taken out of a recording; they are there as long as this is.
pub struct Files {
    state: Mutex<Taken>,
    notices: Notices,
}

#[derive(Default)]
struct Taken {
    folder: Option<TempDir>,
    taken: HashMap<String, PathBuf>,
    /// What was mapped of which files, once it has been looked up.
    views: Option<HashMap<String, FileView>>,
    /// Files that are as they were.
    same: HashSet<String>,
}

/// What has become of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Same,
    Changed,
    Gone,
}

impl Files {
    /// None yet.
    pub fn new(notices: Notices) -> Self {
        Self { state: Mutex::default(), notices }
    }

    /// Lets modules whose files are gone, or have changed, be found in what the recording has of
    /// them. Of those that have changed it is said once.
    pub fn stand_in(&self, recording: &Recording, modules: &mut [ModuleMap]) -> anyhow::Result<()> {
        let mut taken = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        taken.stand_in(recording, modules, &self.notices)
    }
}

impl Taken {
    fn stand_in(
        &mut self,
        recording: &Recording,
        modules: &mut [ModuleMap],
        notices: &Notices,
    ) -> anyhow::Result<()> {
        let views = self.views.take().unwrap_or_else(|| views(recording));
        for module in modules.iter_mut().filter(|module| module.path.starts_with('/')) {
            let Some(view) = views.get(&module.path).filter(|_| !self.same.contains(&module.path))
            else {
                continue;
            };
            let (path, known) = (module.path.clone(), self.taken.contains_key(&module.path));
            let state = if known { State::Gone } else { state(recording, &path, view) };
            if state == State::Same {
                self.same.insert(path);
                continue;
            }
            self.take(recording, module, view)?;
            if state == State::Changed {
                let stands_in = module.path != path;
                let then = if stands_in {
                    "what was recorded is used"
                } else {
                    "names and lines may be wrong"
                };
                notices.tell(&format!("{path} has changed since it was recorded; {then}"));
                if !stands_in {
                    self.same.insert(path);
                }
            }
        }
        self.views = Some(views);
        Ok(())
    }

    fn take(
        &mut self,
        recording: &Recording,
        module: &mut ModuleMap,
        view: &FileView,
    ) -> anyhow::Result<()> {
        if let Some(path) = self.taken.get(&module.path) {
            module.path = path.to_string_lossy().into_owned();
            return Ok(());
        }
        let contents = recording.labelled(view.key.0).and_then(|id| recording.blob(id).ok());
        // Of a large file only what was mapped is kept, which is no ELF file.
        let Some(contents) = contents.filter(|bytes| bytes.len() as u64 == view.size) else {
            return Ok(());
        };
        let folder = match &mut self.folder {
            Some(folder) => folder,
            none => none.insert(tempfile::tempdir().context("no folder for the program's files")?),
        };
        // One folder each: names can come twice.
        let folder = folder.path().join(self.taken.len().to_string());
        std::fs::create_dir(&folder).context("no folder for the program's files")?;
        let name = Path::new(&module.path).file_name().unwrap_or("file".as_ref());
        let path = folder.join(name);
        std::fs::write(&path, contents)
            .with_context(|| format!("cannot write {}", path.display()))?;
        self.taken.insert(module.path.clone(), path.clone());
        module.path = path.to_string_lossy().into_owned();
        Ok(())
    }
}

/// What has become of a file since it was recorded.
fn state(recording: &Recording, path: &str, view: &FileView) -> State {
    let Ok(metadata) = std::fs::metadata(path) else { return State::Gone };
    let Some(recorded) = recording.labelled(view.key.0) else { return State::Same };
    if metadata.len() != view.size {
        return if is_program(recording, recorded) { State::Changed } else { State::Same };
    }
    let now = std::fs::read(path).map(|contents| BlobId::of(&contents));
    if now.is_ok_and(|now| now == recorded) || !is_program(recording, recorded) {
        return State::Same;
    }
    State::Changed
}

/// Whether it is a whole ELF file; programs write to other files that they map.
fn is_program(recording: &Recording, contents: BlobId) -> bool {
    recording.blob(contents).is_ok_and(|contents| contents.starts_with(b"\x7fELF"))
}

/// What was mapped of which files.
fn views(recording: &Recording) -> HashMap<String, FileView> {
    let mut views = HashMap::new();
    for process in recording.processes() {
        let Ok(log) = recording.log(process.process) else { continue };
        for (entry, _) in entries(log) {
            match entry {
                Entry::Image(image) => {
                    let mapped = image.mappings.into_iter();
                    views.extend(mapped.filter_map(|mapping| Some((mapping.path?, mapping.view?))));
                }
                Entry::Mapped { path, view } => {
                    views.insert(path, view);
                }
                _ => {}
            }
        }
    }
    views
}
