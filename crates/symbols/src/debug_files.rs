//! Where debug information lives when it is not in the program's own file: by build-id, by
//! debug link, by alternate link (dwz), and as split units (`.dwo`, `.dwp`).
//!
//! A file is taken only if it proves to belong: the same build-id, or the checksum of the link.

use crate::image::Image;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The folders that are searched for separate debug files.
#[derive(Clone, Debug)]
pub struct DebugFiles {
    roots: Vec<PathBuf>,
}

impl Default for DebugFiles {
    /// The system's own folder, `/usr/lib/debug`.
    fn default() -> Self {
        Self::new(["/usr/lib/debug"])
    }
}

impl DebugFiles {
    /// Searches `roots`, in this order.
    #[must_use]
    pub fn new(roots: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { roots: roots.into_iter().map(Into::into).collect() }
    }

    /// The separate file with the debug information of `image`.
    #[must_use]
    pub fn of(&self, image: &Image) -> Option<Image> {
        self.by_build_id(image).or_else(|| self.by_link(image))
    }

    /// The file with debug information that `image` shares with others.
    #[must_use]
    pub fn alternate_of(&self, image: &Image) -> Option<Image> {
        let link = image.alternate_link()?;
        let folder = real_folder(image.path());
        let by_id = self.roots.iter().map(|root| root.join(build_id_path(&link.build_id)));
        let by_path = self.roots.iter().filter_map(|root| {
            // `/usr/lib/debug/.dwz/…` as written, and the same below a configured root.
            let below = link.path.strip_prefix("/usr/lib/debug").ok()?;
            Some(root.join(below))
        });
        std::iter::once(folder.join(&link.path))
            .chain(by_path)
            .chain(by_id)
            .filter_map(|path| Image::open(&path).ok())
            .find(|found| found.build_id() == Some(&link.build_id))
    }

    /// The package of split units that belongs to the file at `path`.
    #[must_use]
    pub(crate) fn package_of(path: &Path) -> Option<Image> {
        let mut name = OsString::from(path);
        name.push(".dwp");
        Image::open(Path::new(&name)).ok()
    }

    /// The file of one split unit: as the compiler named it, or beside the program.
    #[must_use]
    pub(crate) fn split_unit(program: &Path, folder: Option<&Path>, name: &Path) -> Option<Image> {
        let as_named = folder.map_or_else(|| name.to_path_buf(), |folder| folder.join(name));
        let beside = real_folder(program).join(name.file_name()?);
        let below = real_folder(program).join(name);
        [as_named, below, beside].iter().find_map(|path| Image::open(path).ok())
    }

    fn by_build_id(&self, image: &Image) -> Option<Image> {
        let id = image.build_id().filter(|id| id.len() > 2)?;
        self.roots
            .iter()
            .filter_map(|root| Image::open(&root.join(build_id_path(id))).ok())
            .find(|found| found.build_id() == Some(id))
    }

    fn by_link(&self, image: &Image) -> Option<Image> {
        let link = image.debug_link()?;
        let folder = real_folder(image.path());
        let below_root = folder.strip_prefix("/").unwrap_or(&folder);
        let name = Path::new(&link.name).file_name()?;
        let roots = self.roots.iter().map(|root| root.join(below_root).join(name));
        [folder.join(name), folder.join(".debug").join(name)]
            .into_iter()
            .chain(roots)
            .filter(|path| path != image.path())
            .filter_map(|path| Image::open(&path).ok())
            .find(|found| {
                let same_id = found.build_id().is_some() && found.build_id() == image.build_id();
                same_id || found.crc() == Some(link.crc)
            })
    }
}

/// `.build-id/ab/cdef….debug`
fn build_id_path(id: &[u8]) -> PathBuf {
    let mut hex = String::new();
    for byte in id {
        let _ = write!(hex, "{byte:02x}");
    }
    let (start, rest) = hex.split_at(hex.len().min(2));
    Path::new(".build-id").join(start).join(format!("{rest}.debug"))
}

/// The folder that a file is really in, links followed.
fn real_folder(path: &Path) -> PathBuf {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    real.parent().map(Path::to_path_buf).unwrap_or_default()
}
