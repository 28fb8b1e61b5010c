//! Files of a recorded program that are not where they were: a recording has the contents of what the
//! program mapped, so its names and lines can still be had.

use anyhow::Context;
use engine::report::ModuleMap;
use recording::Recording;
use recording::log::{Entry, FileView, entries};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Files taken out of a recording; they are there as long as this is.
#[derive(Default)]
pub struct Files {
    folder: Option<TempDir>,
    taken: HashMap<String, PathBuf>,
}

impl Files {
    /// Lets modules whose files are gone be found in what the recording has of them.
    pub fn stand_in(
        &mut self,
        recording: &Recording,
        modules: &mut [ModuleMap],
    ) -> anyhow::Result<()> {
        let is_gone =
            |module: &ModuleMap| module.path.starts_with('/') && !Path::new(&module.path).exists();
        if !modules.iter().any(is_gone) {
            return Ok(());
        }
        let views = views(recording);
        for module in modules.iter_mut().filter(|module| is_gone(module)) {
            if let Some(view) = views.get(&module.path) {
                self.take(recording, module, view)?;
            }
        }
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
