//! Finds and reads the source files of a tree. What cannot be used is passed over with a reason,
//! never an error: a tree with a binary file or a symlink loop in it is an ordinary tree.

use rustc_hash::FxHashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Which grammar a file is read with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C, including K&R.
    C,
    /// C++.
    Cpp,
}

/// A file that will be analysed.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Where it is.
    pub path: PathBuf,
    /// How reports name it: relative to the tree if there is just one, else as it was reached.
    pub shown: String,
    /// Whether only its declarations count (`--headers`).
    pub declarations_only: bool,
}

/// A file or folder that was passed over.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// What.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// What was found under the roots.
#[derive(Debug, Default)]
pub struct Sources {
    /// Files to analyse, sorted by name so that every run sees the same order.
    pub files: Vec<SourceFile>,
    /// What was passed over.
    pub skipped: Vec<Skipped>,
}

const C: &[&str] = &["c", "h"];
const CPP: &[&str] = &["cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "ipp", "inl", "tcc"];

/// Lists the source files under `roots`, and under `headers` those whose declarations are wanted.
pub fn find(roots: &[PathBuf], headers: &[PathBuf]) -> Sources {
    let mut sources = Sources::default();
    let mut seen = FxHashSet::default();
    let only_root = match roots {
        [only] => Some(only.as_path()),
        _ => None,
    };
    for (root, declarations_only) in
        roots.iter().map(|root| (root, false)).chain(headers.iter().map(|root| (root, true)))
    {
        let base = only_root.filter(|only| *only == root.as_path());
        find_under(root, base, declarations_only, &mut seen, &mut sources);
    }
    sources.files.sort_by(|left, right| left.path.cmp(&right.path));
    sources
}

fn find_under(
    root: &Path,
    base: Option<&Path>,
    declarations_only: bool,
    seen: &mut FxHashSet<(u64, u64)>,
    sources: &mut Sources,
) {
    for entry in WalkDir::new(root).follow_links(true).sort_by_file_name() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                sources.skipped.push(skipped_entry(&error));
                continue;
            }
        };
        let named = entry.depth() == 0;
        if !entry.file_type().is_file() || !(named || has_source_extension(entry.path())) {
            continue;
        }
        // A file reached twice, through a link or through overlapping roots, counts once.
        if let Ok(metadata) = entry.metadata()
            && !seen.insert((metadata.dev(), metadata.ino()))
        {
            continue;
        }
        let path = entry.path().to_path_buf();
        let shown = shown_name(base, &path);
        sources.files.push(SourceFile { path, shown, declarations_only });
    }
}

fn skipped_entry(error: &walkdir::Error) -> Skipped {
    let path = error.path().map(|path| path.display().to_string()).unwrap_or_default();
    let reason = if error.loop_ancestor().is_some() {
        "a symbolic link that leads back to a folder above it".to_string()
    } else {
        error.io_error().map_or_else(|| "cannot be read".to_string(), ToString::to_string)
    };
    Skipped { path, reason }
}

fn shown_name(base: Option<&Path>, path: &Path) -> String {
    let relative = base
        .and_then(|base| path.strip_prefix(base).ok())
        .filter(|rest| !rest.as_os_str().is_empty());
    relative.unwrap_or(path).display().to_string()
}

fn has_source_extension(path: &Path) -> bool {
    extension(path).is_some_and(|found| C.contains(&&*found) || CPP.contains(&&*found))
}

fn extension(path: &Path) -> Option<String> {
    path.extension().and_then(|found| found.to_str()).map(str::to_ascii_lowercase)
}

/// Whether the file is a header, by its name.
pub fn is_header(path: &Path) -> bool {
    extension(path).is_some_and(|found| found.starts_with('h') || found == "inl" || found == "ipp")
}

/// The language of a file: by its extension, and for `.h` by the words that only C++ has.
pub fn language(path: &Path, text: &[u8]) -> Language {
    match extension(path) {
        Some(found) if CPP.contains(&&*found) => Language::Cpp,
        Some(found) if found == "h" && looks_like_cpp(text) => Language::Cpp,
        _ => Language::C,
    }
}

/// Headers say `class X {`, `namespace x {` or `template <` at the start of a line; the same words
/// indented or in comments are too weak a sign.
fn looks_like_cpp(text: &[u8]) -> bool {
    const WORDS: [&[u8]; 4] = [b"class ", b"namespace ", b"template <", b"template<"];
    text.split(|byte| *byte == b'\n').any(|line| {
        WORDS.iter().any(|word| line.starts_with(word)) && !line.ends_with(b";") // `class` in C
    })
}

/// Reads a file, or says why it is passed over.
pub fn read(path: &Path, most_bytes: u64) -> Result<Vec<u8>, String> {
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > most_bytes {
        return Err(format!(
            "{} MiB is more than --max-file-size ({} MiB)",
            length >> 20,
            most_bytes >> 20
        ));
    }
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    if text[..text.len().min(8192)].contains(&0) {
        return Err("a binary file".into());
    }
    Ok(text)
}
