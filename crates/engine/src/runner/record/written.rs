//! Files that are mapped and also written to by a descriptor: the mapping shows what was written, and
//! nothing of the guest's did it. What a mapping shows after such a call goes to the log.
//!
//! A process's own memory as a file, `/proc/self/mem`, is such a file too: debuggers try it on
//! themselves.
//!
//! Few programs do this, and every one maps its libraries and writes files. So a process first notes
//! which files it has mapped and which it can write to; only if one is both are calls looked at.

use super::Recorder;
use crate::runner::memory::{Mapping, Memory};
use crate::runner::sys::{self, syscall};
use recording::log::Entry;
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

/// A file: device and inode.
type Identity = (u64, u64);

/// What this process does with files.
#[derive(Default)]
pub struct Files {
    mapped: BTreeSet<Identity>,
    writable: BTreeSet<Identity>,
    /// Those that are both.
    both: BTreeSet<Identity>,
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
    match number as i64 {
        libc::SYS_open if a[1] & writes != 0 => opened(recorder, answer as u64),
        libc::SYS_openat if a[2] & writes != 0 => opened(recorder, answer as u64),
        libc::SYS_creat => opened(recorder, answer as u64),
        libc::SYS_mmap if a[3] as i32 & libc::MAP_ANONYMOUS == 0 => mapped(recorder, a[4]),
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
    let link = std::fs::read_link(format!("/proc/thread-self/fd/{}", descriptor as i32));
    let Ok(path) = link else { return false };
    path.ends_with("mem") && path.starts_with(format!("/proc/{}", sys::getpid()))
}

fn opened(recorder: &mut Recorder, descriptor: u64) {
    recorder.written.memory |= is_own_memory(descriptor);
    if let Some(file) = super::output::identity(descriptor) {
        recorder.written.is_writable(file);
    }
}

fn mapped(recorder: &mut Recorder, descriptor: u64) {
    // SAFETY: asks only.
    let flags = unsafe { syscall!(libc::SYS_fcntl, descriptor, libc::F_GETFL) };
    if let Some(file) = super::output::identity(descriptor) {
        recorder.written.is_mapped(file, flags >= 0 && flags as i32 & libc::O_ACCMODE != 0);
    }
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
    let link = format!("/proc/thread-self/fd/{}", descriptor as i32);
    let Ok(meta) = std::fs::metadata(&link) else { return };
    let file = (meta.dev(), meta.ino());
    if !recorder.written.both.contains(&file) {
        return;
    }
    let path = std::fs::read_link(&link).unwrap_or_default();
    let shows = |mapping: &Mapping| {
        mapping.identity == Some(file) || mapping.file.as_deref() == path.to_str()
    };
    let mut writes = Vec::new();
    for (range, mapping) in memory.iter().filter(|(_, mapping)| shows(mapping)) {
        let length = range.end - range.start;
        let first = part.start.max(mapping.offset);
        // What is mapped beyond the end of the file cannot be read.
        let last = part.end.min(mapping.offset.saturating_add(length)).min(meta.len());
        let readable = mapping.protection & libc::PROT_READ != 0;
        if readable && first < last {
            writes.push((range.start + (first - mapping.offset), last - first));
        }
    }
    put(recorder, writes);
}

/// Writes down what is now at some places.
fn put(recorder: &mut Recorder, writes: Vec<(u64, u64)>) {
    let payload: u64 = writes.iter().map(|(_, length)| length).sum();
    if payload > 0 {
        recorder.put(&Entry::Others { at: None, writes: writes.clone() }, payload as u32);
        writes.into_iter().for_each(|(start, length)| recorder.put_memory(start, length));
    }
}
