//! What the kernel tells of this thread in `/proc`. The guest may have none, or one of another namespace: sandboxes
//! change their root to an empty folder. The host's, open, leads there all the same.

use crate::sys::syscall;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};

/// The host's `/proc`; negative if there is none.
static FOLDER: AtomicI32 = AtomicI32::new(-1);

/// From now on this folder is asked.
pub fn use_folder(folder: i32) {
    FOLDER.store(folder, Ordering::Relaxed);
}

/// A folder and a path in it that lead to a file about this thread.
fn place(name: &str) -> (i64, CString) {
    let (folder, path) = match FOLDER.load(Ordering::Relaxed) {
        folder @ 0.. => (i64::from(folder), format!("thread-self/{name}")),
        _ => (i64::from(libc::AT_FDCWD), format!("/proc/thread-self/{name}")),
    };
    (folder, CString::new(path).unwrap_or_default())
}

/// A file about this thread.
pub fn open(name: &str) -> Option<File> {
    let (folder, path) = place(name);
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the kernel reads a terminated path; the descriptor is new.
    unsafe {
        let descriptor = syscall!(libc::SYS_openat, folder, path.as_ptr(), flags);
        (descriptor >= 0).then(|| File::from_raw_fd(descriptor as i32))
    }
}

/// What a file about this thread says; nothing if it cannot be read.
pub fn read(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut file) = open(name) {
        let _ = file.read_to_end(&mut bytes);
    }
    bytes
}

/// The same as text.
pub fn text(name: &str) -> String {
    String::from_utf8_lossy(&read(name)).into_owned()
}

/// Where a descriptor leads.
pub fn link(descriptor: u64) -> Option<PathBuf> {
    let (folder, path) = place(&format!("fd/{}", descriptor as i32));
    let mut link = vec![0u8; libc::PATH_MAX as usize];
    // SAFETY: the kernel reads a terminated path and writes at most the buffer's length.
    let length = unsafe {
        syscall!(libc::SYS_readlinkat, folder, path.as_ptr(), link.as_mut_ptr(), link.len())
    };
    link.truncate(usize::try_from(length).ok()?);
    Some(OsString::from_vec(link).into())
}
