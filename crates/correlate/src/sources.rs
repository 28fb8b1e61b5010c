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

/// Which folders below the roots are not analysed. The roots themselves always are.
#[derive(Clone, Debug, Default)]
pub struct Exclusions {
    /// Names or paths below a root, with `*` for any part of a name.
    pub patterns: Vec<String>,
    /// Whether hidden folders and copies of other projects are analysed as well.
    pub all_folders: bool,
}

/// Names of folders that hold copies of other projects.
const VENDORED: &[&str] = &[
    "deps",
    "vendor",
    "vendored",
    "third_party",
    "third-party",
    "thirdparty",
    "3rdparty",
    "3rd_party",
    "node_modules",
    "bundled",
];

/// What is done with a folder or file.
enum Treatment {
    Analysed,
    /// Only its declarations count.
    Lends(&'static str),
    Left(&'static str),
}

impl Exclusions {
    /// Whether a pattern names the file or folder.
    fn excludes(&self, relative: &Path) -> bool {
        let name = relative.file_name().unwrap_or_default().to_string_lossy();
        let path = relative.to_string_lossy();
        self.patterns.iter().any(|it| {
            let pattern = it.trim_end_matches('/').as_bytes();
            matches(pattern, name.as_bytes()) || matches(pattern, path.as_bytes())
        })
    }

    fn treatment(&self, relative: &Path) -> Treatment {
        if self.excludes(relative) {
            return Treatment::Left("excluded by --exclude");
        }
        let name = relative.file_name().unwrap_or_default().to_string_lossy();
        if self.all_folders {
            return Treatment::Analysed;
        }
        if name.starts_with('.') {
            return Treatment::Left("a hidden folder; --all-folders analyses it");
        }
        if VENDORED.contains(&&*name) {
            return Treatment::Lends(
                "by its name a copy of other projects, only its declarations count; --all-folders \
                 analyses it",
            );
        }
        Treatment::Analysed
    }
}

/// Whether a text is what a pattern says, `*` being anything.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|skipped| matches(rest, &text[skipped..])),
        [first, rest @ ..] => text.first() == Some(first) && matches(rest, &text[1..]),
    }
}

/// Lists the source files under `roots`, and under `headers` those whose declarations are wanted.
pub fn find(roots: &[PathBuf], headers: &[PathBuf], exclusions: &Exclusions) -> Sources {
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
        let mut search = Search { base, exclusions, seen: &mut seen, sources: &mut sources };
        search.find_under(root, declarations_only);
    }
    sources.files.sort_by(|left, right| left.path.cmp(&right.path));
    sources
}

struct Search<'a> {
    /// The folder that names are relative to.
    base: Option<&'a Path>,
    exclusions: &'a Exclusions,
    seen: &'a mut FxHashSet<(u64, u64)>,
    sources: &'a mut Sources,
}

impl Search<'_> {
    fn find_under(&mut self, root: &Path, declarations_only: bool) {
        let mut lending: Vec<PathBuf> = Vec::new();
        let mut walk = WalkDir::new(root).follow_links(true).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.sources.skipped.push(skipped_entry(&error));
                    continue;
                }
            };
            let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
            if entry.depth() > 0 && entry.file_type().is_dir() {
                match self.exclusions.treatment(relative) {
                    Treatment::Analysed => {}
                    Treatment::Left(reason) => {
                        self.skip(entry.path(), reason);
                        walk.skip_current_dir();
                    }
                    Treatment::Lends(reason) => {
                        if !declarations_only
                            && !lending.iter().any(|it| entry.path().starts_with(it))
                        {
                            self.skip(entry.path(), reason);
                        }
                        lending.push(entry.path().to_path_buf());
                    }
                }
                continue;
            }
            let only_lends =
                declarations_only || lending.iter().any(|folder| entry.path().starts_with(folder));
            if entry.depth() == 0 || !self.exclusions.excludes(relative) {
                self.file(&entry, only_lends);
            }
        }
    }

    fn skip(&mut self, path: &Path, reason: &str) {
        let path = shown_name(self.base, path);
        self.sources.skipped.push(Skipped { path, reason: reason.to_string() });
    }

    fn file(&mut self, entry: &walkdir::DirEntry, declarations_only: bool) {
        let named = entry.depth() == 0;
        if !entry.file_type().is_file() || !(named || has_source_extension(entry.path())) {
            return;
        }
        // A file reached twice, through a link or through overlapping roots, counts once.
        if let Ok(metadata) = entry.metadata()
            && !self.seen.insert((metadata.dev(), metadata.ino()))
        {
            return;
        }
        let path = entry.path().to_path_buf();
        let shown = shown_name(self.base, &path);
        self.sources.files.push(SourceFile { path, shown, declarations_only });
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
