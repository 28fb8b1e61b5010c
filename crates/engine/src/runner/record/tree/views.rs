//! Files that this process has mapped to read, and that nobody writes: they need not be looked at each time the
//! tree baton comes back. A browser maps 30 MB of them.
//!
//! What is written by a descriptor shows in the file's times, which the kernel takes from a clock with ticks;
//! a file that was changed within the last of them may be changed again without showing it, so it is not
//! trusted yet. What is written through a mapping need not show at all: files that any process of the recording has
//! mapped so that it can be written are not trusted (`made::is_written`).

use super::super::made;
use crate::runner::memory::Mapping;
use crate::sys::syscall;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Longer than a tick of the clock that files are stamped by, in nanoseconds.
const TICK: i128 = 20_000_000;

/// What changes with the contents: length, and the times of the last change of contents and of anything.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State(u64, i128, i128);

impl State {
    fn of(meta: &Metadata) -> Self {
        let time = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let changed = time(meta.ctime(), meta.ctime_nsec());
        Self(meta.len(), time(meta.mtime(), meta.mtime_nsec()), changed)
    }

    /// Whether the next change is sure to show.
    fn has_settled(&self) -> bool {
        i128::from(made::coarse_now()) - self.1.max(self.2) > TICK
    }
}

struct View {
    end: u64,
    file: (u64, u64),
    state: State,
}

/// Mappings whose contents are known to be those of a state of their file, by their beginnings.
#[derive(Default)]
pub struct Views(BTreeMap<u64, View>);

impl Views {
    /// A file has been mapped, and its contents are being recorded.
    pub fn mapped(&mut self, range: &Range<u64>, path: &Path, meta: &Metadata) {
        let state = State::of(meta);
        if state.has_settled() && has_times(path) {
            let view = View { end: range.end, file: (meta.dev(), meta.ino()), state };
            self.0.insert(range.start, view);
        }
    }

    /// Other memory is there now.
    pub fn forget(&mut self, range: &Range<u64>) {
        self.0.retain(|start, view| view.end <= range.start || range.end <= *start);
    }

    /// Whether a mapping, or a part of one, shows what it did when it was mapped.
    pub fn is_unchanged(&self, range: &Range<u64>, mapping: &Mapping) -> bool {
        let Some((_, view)) = self.0.range(..=range.start).next_back() else { return false };
        if view.end < range.end
            || mapping.identity != Some(view.file)
            || made::is_written(view.file)
        {
            return false;
        }
        let Some(meta) = mapping.file.as_deref().and_then(|path| std::fs::metadata(path).ok())
        else {
            return false;
        };
        (meta.dev(), meta.ino()) == view.file && State::of(&meta) == view.state
    }
}

/// Whether a file lies where its times tell of every change at once.
fn has_times(path: &Path) -> bool {
    const XFS: u64 = 0x5846_5342;
    const LOCAL: [u64; 5] = [
        libc::EXT4_SUPER_MAGIC as u64,
        libc::BTRFS_SUPER_MAGIC as u64,
        libc::TMPFS_MAGIC as u64,
        libc::OVERLAYFS_SUPER_MAGIC as u64,
        XFS,
    ];
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut kind = [0u64; 15];
    // SAFETY: the kernel reads a terminated path and writes one `struct statfs`, 120 bytes.
    let answer = unsafe { syscall!(libc::SYS_statfs, path.as_ptr(), kind.as_mut_ptr()) };
    answer == 0 && LOCAL.contains(&kind[0])
}
