//! Memory that the guest has made, with a name in `/dev/shm`, can be opened by anyone later on. The
//! kernel reports every opening (`inotify`); the guest's processes count theirs. One that none of them
//! has made is an outsider's, who may write at any time from then on.

use super::files::shared;
use super::made::{self, Name};
use super::tree::move_to;
use crate::log_ring::OPENED;
use crate::runner::syscall::files::OPENINGS;
use crate::sys::{self, syscall};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// The memory with a name that this process shares.
#[derive(Default)]
pub struct Outsiders(Vec<Watched>);

struct Watched {
    path: PathBuf,
    name: Name,
    /// The kernel's number of the watch.
    watch: i32,
    /// Openings by processes of this recording before the watch began.
    before: u64,
    /// Openings that the kernel has reported.
    reported: u64,
}

impl Outsiders {
    /// A file in memory is about to be mapped.
    pub fn watch(&mut self, descriptor: u64, path: &Path) {
        let Some(name) = made::name(descriptor) else { return };
        if self.0.is_empty() && !start() {
            return;
        }
        self.add(name, path);
    }

    fn add(&mut self, name: Name, path: &Path) {
        let before = opened_by_us(name);
        let Ok(text) = CString::new(path.as_os_str().as_bytes()) else { return };
        // SAFETY: the kernel reads a terminated path.
        let watch = unsafe {
            syscall!(libc::SYS_inotify_add_watch, OPENINGS, text.as_ptr(), libc::IN_OPEN)
        };
        // Without a name it cannot be opened.
        if watch >= 0 && self.0.iter().all(|watched| i64::from(watched.watch) != watch) {
            let (path, watch) = (path.to_owned(), watch as i32);
            self.0.push(Watched { path, name, watch, before, reported: 0 });
        }
    }

    /// In a new child: what the kernel tells its parent it does not tell the child.
    pub fn forked(&mut self) {
        let watched = std::mem::take(&mut self.0);
        if !watched.is_empty() && start() {
            watched.iter().for_each(|watched| self.add(watched.name, &watched.path));
        }
    }

    /// Memory that somebody else has opened.
    pub fn find(&mut self) -> Option<&Path> {
        if self.0.is_empty() {
            return None;
        }
        self.count_openings();
        let opening = u64::from(shared().opening.load(Ordering::Acquire));
        let is_foreign = |watched: &&Watched| {
            let ours = opened_by_us(watched.name).saturating_sub(watched.before);
            watched.reported > ours.saturating_add(opening)
        };
        self.0.iter().find(is_foreign).map(|watched| watched.path.as_path())
    }

    fn count_openings(&mut self) {
        /// Of an event: watch, mask, cookie, length of a name, which files have none of.
        const EVENT: usize = 16;
        let mut buffer = [0u8; 64 * EVENT];
        loop {
            let room = buffer.len();
            // SAFETY: the kernel writes at most the length of the buffer.
            let got = unsafe { syscall!(libc::SYS_read, OPENINGS, buffer.as_mut_ptr(), room) };
            if got <= 0 {
                return;
            }
            for event in buffer[..got as usize].chunks_exact(EVENT) {
                let watch = i32::from_le_bytes([event[0], event[1], event[2], event[3]]);
                let mask = u32::from_le_bytes([event[4], event[5], event[6], event[7]]);
                let watched = self.0.iter_mut().find(|watched| watched.watch == watch);
                if let Some(watched) = watched.filter(|_| mask & libc::IN_OPEN != 0) {
                    watched.reported += 1;
                }
            }
        }
    }
}

/// From now on the kernel tells this process, in place of whom it told before.
fn start() -> bool {
    sys::with_lifted_limit(|| {
        let flags = libc::IN_NONBLOCK | libc::IN_CLOEXEC;
        // SAFETY: makes a descriptor.
        move_to(unsafe { syscall!(libc::SYS_inotify_init1, flags) }, OPENINGS)
    })
}

/// How often the processes of this recording have opened something.
fn opened_by_us(name: Name) -> u64 {
    shared().opened[name.key() as usize % OPENED].load(Ordering::Acquire)
}

/// A process of this recording is about to open a file.
pub fn opens() {
    shared().opening.fetch_add(1, Ordering::AcqRel);
}

/// It has opened this one, or none.
pub fn opened(name: Option<Name>) {
    if let Some(name) = name {
        shared().opened[name.key() as usize % OPENED].fetch_add(1, Ordering::AcqRel);
    }
    shared().opening.fetch_sub(1, Ordering::AcqRel);
}
