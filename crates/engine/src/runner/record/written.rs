//! Files that are mapped and also written to by a descriptor: the mapping shows what was written, and
//! nothing of the guest's did it. What a mapping shows after such a call goes to the log; of a file that
//! becomes shorter the log has its new length, as what is mapped beyond it is gone.
//!
//! A process's own memory as a file, `/proc/self/mem`, is such a file too: debuggers try it on
//! themselves.
//!
//! Few programs do this, and every one maps its libraries and writes files. So a process first notes
//! which files it has mapped and which it can write to; only if one is both are calls looked at.

use super::{Recorder, changed, files, made};
use crate::runner::memory::{Mapping, Memory};
use crate::runner::{guest, procfs};
use crate::sys::{self, syscall};
use recording::log::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const PAGE: u64 = 4096;

/// A file: device and inode.
type Identity = (u64, u64);

/// What this process does with files.
#[derive(Default)]
pub struct Files {
    mapped: BTreeSet<Identity>,
    writable: BTreeSet<Identity>,
    /// Those that are both.
    both: BTreeSet<Identity>,
    /// How long those that are mapped were last.
    sizes: BTreeMap<Identity, u64>,
    /// Whether the process has its own memory open as a file.
    memory: bool,
}

impl Files {
    fn is_mapped(&mut self, file: Identity, writable: bool) {
        self.mapped.insert(file);
        if writable || self.writable.contains(&file) {
            self.both.insert(file);
        }
    }

    /// Whether what this process writes to a file is looked for in its mappings.
    pub fn is_followed(&self, file: Identity) -> bool {
        self.both.contains(&file)
    }

    fn is_writable(&mut self, file: Identity) {
        self.writable.insert(file);
        if self.mapped.contains(&file) {
            self.both.insert(file);
        }
    }
}

/// A call has returned: what it means for files, and for memory that shows one.
pub fn called(recorder: &mut Recorder, memory: &Memory, number: u64, a: [u64; 6], answer: i64) {
    if answer < 0 {
        return;
    }
    let writes = libc::O_ACCMODE as u64;
    if let Some((meta, path)) = perhaps_cut(number, a, answer as u64) {
        cut(recorder, memory, &meta, &path);
    }
    match number as i64 {
        libc::SYS_open if a[1] & writes != 0 => opened(recorder, answer as u64),
        libc::SYS_openat if a[2] & writes != 0 => opened(recorder, answer as u64),
        libc::SYS_creat => opened(recorder, answer as u64),
        libc::SYS_mmap if a[3] as i32 & libc::MAP_ANONYMOUS == 0 => {
            let start = answer as u64;
            mapped(recorder, a, start..start.saturating_add(a[1]));
        }
        libc::SYS_munmap => changed::unmapped(recorder, a[0]..a[0].saturating_add(a[1])),
        _ if recorder.written.both.is_empty() && !recorder.written.memory => {}
        _ => {
            if let Some((descriptor, part)) = part_written(number, a, answer as u64) {
                show(recorder, memory, descriptor, part);
            }
        }
    }
}

/// Whether a descriptor leads to the memory of this process.
fn is_own_memory(descriptor: u64) -> bool {
    let Some(path) = procfs::link(descriptor) else { return false };
    path.ends_with("mem") && path.starts_with(format!("/proc/{}", sys::getpid()))
}

fn opened(recorder: &mut Recorder, descriptor: u64) {
    recorder.written.memory |= is_own_memory(descriptor);
    if let Some(file) = super::output::identity(descriptor) {
        recorder.written.is_writable(file);
    }
}

fn mapped(recorder: &mut Recorder, a: [u64; 6], place: Range<u64>) {
    let [_, _, protection, how, descriptor, _] = a;
    // SAFETY: asks only.
    let flags = unsafe { syscall!(libc::SYS_fcntl, descriptor, libc::F_GETFL) };
    if let Some(meta) = status(descriptor) {
        let file = (meta.dev(), meta.ino());
        recorder.written.is_mapped(file, flags >= 0 && flags as i32 & libc::O_ACCMODE != 0);
        recorder.written.sizes.insert(file, meta.len());
        let path = procfs::link(descriptor).unwrap_or_default();
        let written =
            protection as i32 & libc::PROT_WRITE != 0 && how as i32 & libc::MAP_SHARED != 0;
        if meta.is_file() && how as i32 & libc::MAP_SHARED != 0 {
            if flags < 0 || flags as i32 & libc::O_ACCMODE != 0 {
                made::writes(file);
            } else {
                recorder.tree.shows_file(&place, &path, &meta);
            }
        }
        if meta.is_file() && !written {
            changed::mapped(recorder, place, path, &meta);
        }
    }
}

/// What the kernel says of the file behind a descriptor of the guest's.
fn status(descriptor: u64) -> Option<Metadata> {
    if (descriptor as i32) < 0 {
        return None;
    }
    // SAFETY: the kernel is asked about the number, which stays the guest's; if it is not open there is an error.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor as i32) });
    file.metadata().ok()
}

/// The file of a call that can have made it shorter, and a path to it.
fn perhaps_cut(number: u64, a: [u64; 6], answer: u64) -> Option<(Metadata, PathBuf)> {
    let cuts = |flags: u64| flags & libc::O_TRUNC as u64 != 0;
    let opened = match number as i64 {
        libc::SYS_truncate => {
            let path = guest::read_string(a[0]).ok()?;
            let path = std::fs::canonicalize(Path::new(OsStr::from_bytes(&path))).ok()?;
            return Some((std::fs::metadata(&path).ok()?, path));
        }
        libc::SYS_ftruncate => a[0],
        libc::SYS_creat => answer,
        libc::SYS_open if cuts(a[1]) => answer,
        libc::SYS_openat if cuts(a[2]) => answer,
        _ => return None,
    };
    Some((status(opened)?, procfs::link(opened).unwrap_or_default()))
}

/// Notes how long a file is now. What is mapped of the rest is not there any more, and would read as
/// zeros if the file became longer again.
fn cut(recorder: &mut Recorder, memory: &Memory, meta: &Metadata, path: &Path) {
    let file = (meta.dev(), meta.ino());
    let Some(known) = recorder.written.sizes.get_mut(&file) else { return };
    let size = meta.len();
    if std::mem::replace(known, size) <= size {
        return;
    }
    recorder.put(&Entry::Cut { identity: files::identity(file), size }, 0);
    // The rest of the last page is zeros now, but for pages that are this process's own.
    let end = size.next_multiple_of(PAGE);
    put(recorder, shown(memory, file, path, size..end));
}

/// The descriptor of the file that a call has written to, and which part of it was written.
fn part_written(number: u64, a: [u64; 6], answer: u64) -> Option<(u64, Range<u64>)> {
    let at = |offset: u64| offset..offset.saturating_add(answer);
    // Where the descriptor is now is behind what was written.
    let behind = |descriptor: u64| {
        // SAFETY: asks only.
        let end = unsafe { syscall!(libc::SYS_lseek, descriptor, 0, libc::SEEK_CUR) };
        (end as u64).saturating_sub(answer)..end as u64
    };
    let all = 0..u64::MAX;
    Some(match number as i64 {
        libc::SYS_write | libc::SYS_writev => (a[0], behind(a[0])),
        libc::SYS_pwrite64 | libc::SYS_pwritev => (a[0], at(a[3])),
        // The file is longer now: its last byte shows that.
        libc::SYS_ftruncate => (a[0], a[1].saturating_sub(1)..a[1]),
        libc::SYS_fallocate | libc::SYS_sendfile | libc::SYS_pwritev2 => (a[0], all),
        libc::SYS_copy_file_range | libc::SYS_splice => (a[2], all),
        _ => return None,
    })
}

/// Writes down what mappings of a file show of a part of it.
fn show(recorder: &mut Recorder, memory: &Memory, descriptor: u64, part: Range<u64>) {
    if recorder.written.memory && is_own_memory(descriptor) {
        let length = part.end - part.start;
        if memory.is_readable(part.start, length) {
            put(recorder, vec![(part.start, length)]);
        }
        return;
    }
    let Some(meta) = status(descriptor) else { return };
    let file = (meta.dev(), meta.ino());
    recorder.written.sizes.entry(file).and_modify(|size| *size = meta.len());
    if !recorder.written.both.contains(&file) {
        return;
    }
    let path = procfs::link(descriptor).unwrap_or_default();
    // What is mapped beyond the end of the file cannot be read.
    put(recorder, shown(memory, file, &path, part.start..part.end.min(meta.len())));
}

/// Where mappings show a part of a file.
fn shown(memory: &Memory, file: Identity, path: &Path, part: Range<u64>) -> Vec<(u64, u64)> {
    let shows = |mapping: &Mapping| {
        mapping.identity == Some(file) || mapping.file.as_deref() == path.to_str()
    };
    let mut places = Vec::new();
    for (range, mapping) in memory.iter().filter(|(_, mapping)| shows(mapping)) {
        let length = range.end - range.start;
        let first = part.start.max(mapping.offset);
        let last = part.end.min(mapping.offset.saturating_add(length));
        let readable = mapping.protection & libc::PROT_READ != 0;
        if readable && first < last {
            places.push((range.start + (first - mapping.offset), last - first));
        }
    }
    places
}

/// Writes down what is now at some places.
fn put(recorder: &mut Recorder, writes: Vec<(u64, u64)>) {
    let payload: u64 = writes.iter().map(|(_, length)| length).sum();
    if payload > 0 {
        recorder.put(&Entry::Others { at: None, writes: writes.clone() }, payload as u32);
        writes.into_iter().for_each(|(start, length)| recorder.put_memory(start, length));
    }
}
