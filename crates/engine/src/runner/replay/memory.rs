//! The guest's address space, arranged as it was recorded. Contents of files come from the
//! recording.

use super::diverge;
use crate::layout;
use crate::runner::context::Context;
use crate::runner::memory::Mapping;
use crate::runner::report;
use crate::runner::screens::TABLES_ARE_TAKEN;
use crate::sys::{self, syscall};
use recording::Recording;
use recording::format::PIECE;
use recording::log::{FileKey, FileView};
use std::collections::HashMap;
use std::ops::Range;

/// Contents of files, as anonymous files that can be mapped.
pub struct Files {
    recording: Recording,
    /// By what they contain.
    contents: HashMap<FileKey, i32>,
    /// Files that are mapped shared, by which file they are: all mappings show the same bytes.
    /// With what they contained when they were mapped last.
    shared: HashMap<u64, (i32, FileKey)>,
}

impl Files {
    /// Of a recording.
    pub fn new(recording: Recording) -> Self {
        Self { recording, contents: HashMap::new(), shared: HashMap::new() }
    }

    /// A descriptor that shows what a view shows.
    pub fn descriptor(&mut self, view: &FileView, shared: bool) -> Result<i32, String> {
        if shared {
            return self.shared_descriptor(view);
        }
        if let Some(descriptor) = self.contents.get(&view.key) {
            return Ok(*descriptor);
        }
        let descriptor = anonymous_file();
        self.unpack(view, descriptor)?;
        self.contents.insert(view.key, descriptor);
        Ok(descriptor)
    }

    /// The one that all shared mappings of a file have: it may have been written to since it was
    /// mapped last.
    fn shared_descriptor(&mut self, view: &FileView) -> Result<i32, String> {
        let (descriptor, key) = match self.shared.get(&view.identity) {
            Some((descriptor, key)) => (*descriptor, Some(*key)),
            None => (anonymous_file(), None),
        };
        if key != Some(view.key) {
            self.unpack(view, descriptor)?;
            self.shared.insert(view.identity, (descriptor, view.key));
        }
        Ok(descriptor)
    }

    /// The anonymous file that is mapped in place of the guest's.
    fn behind(&self, mapping: &Mapping) -> Option<i32> {
        let view = mapping.view?;
        match mapping.shared {
            true => self.shared.get(&view.identity).map(|(file, _)| *file),
            false => self.contents.get(&view.key).copied(),
        }
    }

    /// Puts contents into an anonymous file.
    fn unpack(&self, view: &FileView, file: i32) -> Result<(), String> {
        let missing = "contents of a mapped file are missing in the recording";
        let id = self.recording.labelled(view.key.0).ok_or(missing)?;
        // SAFETY: a descriptor of ours.
        unsafe { syscall!(libc::SYS_ftruncate, file, view.size) };
        let length = self.recording.blobs().find(|(blob, _)| *blob == id).map_or(0, |blob| blob.1);
        let base = if length == view.size { 0 } else { view.offset };
        for index in 0..length.div_ceil(PIECE as u64) {
            let piece = self.recording.blob_piece(id, index as usize);
            let piece = piece.map_err(|error| error.to_string())?;
            let at = base + index * PIECE as u64;
            // SAFETY: the kernel reads a live slice.
            unsafe { syscall!(libc::SYS_pwrite64, file, piece.as_ptr(), piece.len(), at) };
        }
        Ok(())
    }
}

fn anonymous_file() -> i32 {
    // SAFETY: the kernel reads a terminated name.
    let file = unsafe { syscall!(libc::SYS_memfd_create, c"contents".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        report::refuse(&format!("no anonymous file: error {}", -file), 0);
    }
    file as i32
}

/// Puts a mapping where it was, and what a file had there into it.
pub fn map(context: &mut Context, range: Range<u64>, mapping: Mapping, view: Option<&FileView>) {
    if layout::belongs_to_engine(&range) {
        return close(context, range, &mapping);
    }
    let length = range.end - range.start;
    let protection = readable(mapping.protection);
    let placed = match view {
        Some(view) => {
            let flags = if mapping.shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
            let file = context.replayer().files.descriptor(view, mapping.shared);
            let file = file.unwrap_or_else(|what| diverge(context, &what));
            // SAFETY: the recording's layout is the guest's, which never touches the engine's.
            unsafe { sys::map_fixed(range.start, length, protection, flags, file, view.offset) }
        }
        None => {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: as above.
            unsafe { sys::map_fixed(range.start, length, protection, flags, -1, 0) }
        }
    };
    if let Err(error) = placed {
        diverge(context, &format!("memory at {:#x} cannot be mapped: error {error}", range.start));
    }
    let engine = context.engine();
    engine.code_changes(range.start, range.end);
    engine.process.memory.insert(range, mapping);
}

/// The guest had put something over what is ours: only so that nothing else be there, and around it.
fn close(context: &mut Context, range: Range<u64>, mapping: &Mapping) {
    if layout::is_in_tables(&range) && layout::belongs_to_engine(&layout::TABLES) {
        report::unfit(TABLES_ARE_TAKEN);
    }
    if mapping.protection != 0 {
        diverge(context, "memory was mapped where there can be none");
    }
    for part in layout::without_own(range) {
        map(context, part, mapping.clone(), None);
    }
}

/// What can be executed must be readable for us.
pub fn readable(protection: i32) -> i32 {
    if protection == libc::PROT_EXEC { protection | libc::PROT_READ } else { protection }
}

/// `mmap` again, at the place it had.
pub fn mmap(
    context: &mut Context,
    arguments: [u64; 6],
    answer: u64,
    file: Option<(String, FileView)>,
) {
    let [_, length, protection, flags, _, offset] = arguments;
    let length = length.next_multiple_of(4096);
    let shared = flags as i32 & libc::MAP_SHARED != 0;
    let (path, view) = file.unzip();
    let mapping = Mapping {
        protection: protection as i32 & 7,
        shared,
        offset,
        identity: view.filter(|_| shared).map(|view| (0, view.identity)),
        file: path.map(Into::into),
        view,
    };
    map(context, answer..answer + length, mapping, view.as_ref());
}

/// Makes files behind a range of memory long enough for all of it: they have grown since they were
/// mapped.
pub fn reach(context: &mut Context, range: Range<u64>) {
    for (part, mapping) in context.engine().process.memory.inside(range) {
        let end = mapping.offset + (part.end - part.start);
        if let Some(file) =
            context.replayer().files.behind(&mapping).filter(|file| size(*file) < end)
        {
            // SAFETY: a descriptor of ours.
            unsafe { syscall!(libc::SYS_ftruncate, file, end) };
        }
    }
}

/// Makes a file that is mapped shorter, wherever that is.
pub fn cut(context: &mut Context, identity: u64, length: u64) {
    let shows = |mapping: &Mapping| mapping.view.is_some_and(|view| view.identity == identity);
    let engine = context.engine();
    let Some(replayer) = &engine.log.replayer else { return };
    for (_, mapping) in engine.process.memory.iter().filter(|(_, mapping)| shows(mapping)) {
        if let Some(file) = replayer.files.behind(mapping).filter(|file| size(*file) > length) {
            // SAFETY: a descriptor of ours.
            unsafe { syscall!(libc::SYS_ftruncate, file, length) };
        }
    }
}

fn size(file: i32) -> u64 {
    let mut status = [0u64; 18];
    // SAFETY: the kernel writes one `struct stat`, 144 bytes.
    unsafe { syscall!(libc::SYS_fstat, file, status.as_mut_ptr()) };
    status[6]
}

/// In a copy of the process: what is mapped shared is no longer so with the original.
pub fn unshare(context: &mut Context) {
    // What is mapped anew is not guarded any more.
    context.engine().unguard_all();
    let files = std::mem::take(&mut context.replayer().files.shared);
    for (identity, (original, key)) in files {
        let copy = copy(original);
        context.replayer().files.shared.insert(identity, (copy, key));
        let mine = |mapping: &Mapping| mapping.identity == Some((0, identity));
        let ranges: Vec<(Range<u64>, Mapping)> = context
            .engine()
            .process
            .memory
            .iter()
            .filter(|(_, mapping)| mine(mapping))
            .map(|(range, mapping)| (range, mapping.clone()))
            .collect();
        for (range, mapping) in ranges {
            let length = range.end - range.start;
            let protection = readable(mapping.protection);
            // SAFETY: the guest's own mapping, replaced by one with the same contents.
            let _ = unsafe {
                let flags = libc::MAP_SHARED;
                sys::map_fixed(range.start, length, protection, flags, copy, mapping.offset)
            };
        }
    }
}

/// An anonymous file with the same contents.
fn copy(original: i32) -> i32 {
    let (copy, size) = (anonymous_file(), size(original));
    // SAFETY: the kernel copies from one descriptor of ours to another.
    unsafe {
        syscall!(libc::SYS_ftruncate, copy, size);
        let mut at = 0u64;
        while at < size {
            let done = syscall!(libc::SYS_sendfile, copy, original, &raw mut at, size - at);
            if done <= 0 {
                break;
            }
        }
    }
    copy
}
