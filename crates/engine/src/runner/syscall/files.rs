//! Files and descriptors that would show the runner instead of the guest.

use super::Outcome;
use crate::config::Config;
use crate::layout;
use crate::runner::engine::Engine;
use crate::runner::guest::{self, Checked};
use crate::runner::procfs;
use crate::runner::signal::frame::GuestMemory;
use crate::sys::{self, syscall};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Calls on descriptors by number: those of the engine do not exist for the guest.
pub fn descriptor_call(number: u64, a: [u64; 6], pass: Outcome) -> Outcome {
    match number as i64 {
        libc::SYS_close_range => close_range(a),
        libc::SYS_dup2 | libc::SYS_dup3 if is_ours(a[1]) => Outcome::error(libc::EBADF),
        _ if is_ours(a[0]) => Outcome::error(libc::EBADF),
        _ => pass,
    }
}

/// The engine's own descriptors are a short run of numbers.
fn is_ours(descriptor: u64) -> bool {
    (layout::DESCRIPTORS..layout::DESCRIPTORS + OWN).contains(&(descriptor as i32))
}

/// How many numbers from [`layout::DESCRIPTORS`] on are the engine's.
const OWN: i32 = 12;
/// Numbers of what a recorder watches shared memory with.
pub const OPENINGS: i32 = layout::DESCRIPTORS + OWN - 5;
/// See [`OPENINGS`].
pub const WATCH: i32 = layout::DESCRIPTORS + OWN - 4;
/// See [`OPENINGS`].
pub const PAGES: i32 = layout::DESCRIPTORS + OWN - 3;
/// Number of a process's own way to notice the host's end.
pub const LIFELINE: i32 = layout::DESCRIPTORS + OWN - 2;
const SPARE: i32 = layout::DESCRIPTORS + OWN - 1;

/// Holds all of the engine's numbers, so that the guest is never given one of them; the last can
/// be had when the guest has used up all others.
pub fn keep_spare(config: &Config) {
    let lifeline = config.lifeline;
    sys::with_lifted_limit(|| hold_all(lifeline));
}

fn hold_all(lifeline: i32) {
    for number in layout::DESCRIPTORS..layout::DESCRIPTORS + OWN {
        // SAFETY: copies a descriptor of ours to a free number of ours.
        unsafe {
            if syscall!(libc::SYS_fcntl, number, libc::F_GETFD) < 0 {
                syscall!(libc::SYS_dup3, lifeline, number, libc::O_CLOEXEC);
            }
        }
    }
}

/// Whether the engine's descriptors are closed when the guest executes another program. Those
/// that the next runner does not need always are.
pub fn hide_from_exec(config: &Config, hidden: bool) {
    let flag = if hidden { libc::FD_CLOEXEC } else { 0 };
    let all = [config.channel, config.lifeline, config.executable, config.proc, config.rings];
    for descriptor in all {
        // SAFETY: descriptors of ours.
        unsafe { syscall!(libc::SYS_fcntl, descriptor, libc::F_SETFD, flag) };
    }
}

/// Lets go of it.
pub fn give_up_spare() {
    // SAFETY: a descriptor of ours.
    unsafe { syscall!(libc::SYS_close, SPARE) };
}

fn close_range(a: [u64; 6]) -> Outcome {
    let (first, last) = (a[0] as u32, a[1] as u32);
    if first > last {
        return Outcome::error(libc::EINVAL);
    }
    let (low, high) = (layout::DESCRIPTORS as u32, (layout::DESCRIPTORS + OWN) as u32);
    let mut answer = 0;
    if first < low {
        // SAFETY: descriptors of the guest's.
        answer = unsafe { syscall!(libc::SYS_close_range, first, last.min(low - 1), a[2]) };
    }
    if answer == 0 && last >= high {
        // SAFETY: as above.
        answer = unsafe { syscall!(libc::SYS_close_range, first.max(high), last, a[2]) };
    }
    Outcome::Answer(answer)
}

/// `getdents64`: lists of open descriptors do not show those of the engine. The kernel writes to room
/// of our own: what it wrote and the guest is not told of would stay behind its list.
pub fn list_directory(engine: &Engine, a: [u64; 6]) -> Outcome {
    const ENOUGH: u64 = 1 << 20;
    let mut entries = vec![0; (a[2] as u32 as u64).min(ENOUGH) as usize];
    loop {
        let (room, length) = (entries.as_mut_ptr() as u64, entries.len() as u64);
        // SAFETY: the kernel writes at most the length of the room.
        let answer = unsafe { sys::call(libc::SYS_getdents64, [a[0], room, length, 0, 0, 0]) };
        if answer <= 0 {
            return Outcome::Answer(answer);
        }
        let all = &entries[..answer as usize];
        let kept = without_ours(all);
        let shown =
            if kept.len() == all.len() || !lists_descriptors(engine, a[0]) { all } else { &kept };
        // An empty answer would be the end of the directory.
        if !shown.is_empty() {
            let written = Checked.write(a[1], shown);
            return if written {
                Outcome::Answer(shown.len() as i64)
            } else {
                Outcome::error(libc::EFAULT)
            };
        }
    }
}

/// Directory entries, but for those named by numbers of the engine's descriptors.
fn without_ours(mut entries: &[u8]) -> Vec<u8> {
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut kept = Vec::with_capacity(entries.len());
    while entries.len() > NAME {
        let length = usize::from(u16::from_le_bytes([entries[LENGTH], entries[LENGTH + 1]]));
        let (entry, rest) = entries.split_at(length.clamp(NAME, entries.len()));
        let name = entry[NAME..].split(|byte| *byte == 0).next().unwrap_or_default();
        let number = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
        if !number.is_some_and(is_ours) {
            kept.extend_from_slice(entry);
        }
        entries = rest;
    }
    kept
}

/// Whether a directory lists the open descriptors of a guest.
fn lists_descriptors(engine: &Engine, directory: u64) -> bool {
    let mut kind = [0u64; 15];
    // SAFETY: the kernel writes one `struct statfs`, 120 bytes.
    let answer = unsafe { syscall!(libc::SYS_fstatfs, directory, kind.as_mut_ptr()) };
    if answer < 0 || kind[0] != libc::PROC_SUPER_MAGIC as u64 {
        return false;
    }
    // By its name alone: from another root it has another path.
    let named =
        |path: PathBuf| path.file_name().is_some_and(|name| name == "fd" || name == "fdinfo");
    procfs::link(directory).is_some_and(named) && is_of_runner(engine, directory)
}

/// Whether a folder in `/proc` that has what there is of a process, or of a thread, is about a runner.
fn is_of_runner(engine: &Engine, directory: u64) -> bool {
    let identity = |directory: u64, path: &CStr, flags: i32| {
        let mut status = [0u64; 18];
        let room = status.as_mut_ptr();
        // SAFETY: the kernel reads a terminated path and writes one `struct stat`, 144 bytes.
        let answer =
            unsafe { syscall!(libc::SYS_newfstatat, directory as i32, path.as_ptr(), room, flags) };
        (answer == 0).then_some((status[0], status[1]))
    };
    let own = identity(engine.config.executable as u64, c"", libc::AT_EMPTY_PATH);
    own.is_some() && identity(directory, c"../exe", 0) == own
}

/// Whether a process, by its name in `/proc`, runs the same executable as this one.
pub fn is_runner(process: &OsStr) -> bool {
    use std::os::unix::fs::MetadataExt;
    let file = |process: &OsStr| {
        let meta = Path::new("/proc").join(process).join("exe").metadata().ok()?;
        Some((meta.dev(), meta.ino()))
    };
    let own = file("self".as_ref());
    own.is_some() && file(process) == own
}

/// What of `/proc/self` a path names.
fn own_proc_file(path: &[u8]) -> Option<&[u8]> {
    let rest = path.strip_prefix(b"/proc/")?;
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    let (who, file) = (&rest[..slash], &rest[slash + 1..]);
    let own = who == b"self" || who == sys::getpid().to_string().as_bytes();
    let thread_self = who == b"thread-self";
    (own || thread_self).then_some(file)
}

/// Whether a path names the guest's own executable.
pub fn is_own_executable(path: &[u8]) -> bool {
    own_proc_file(path) == Some(b"exe")
}

/// `open` and `openat`.
pub fn open(engine: &mut Engine, directory: u64, path: u64, flags: u64, pass: Outcome) -> Outcome {
    let mut start = [0; 6];
    if !Checked.read(path, &mut start) || &start != b"/proc/" {
        return pass;
    }
    let Ok(path) = guest::read_string(path) else { return pass };
    match own_proc_file(&path) {
        Some(b"exe") => {
            let own = [engine.process.executable.as_os_str().as_bytes(), b"\0"].concat();
            // SAFETY: the kernel reads a terminated path.
            let answer = unsafe { syscall!(libc::SYS_openat, directory, own.as_ptr(), flags, 0) };
            Outcome::Answer(answer)
        }
        Some(b"maps") => contents(&maps(engine), flags),
        Some(b"auxv" | b"cmdline" | b"environ") => match stack_part(engine, &path) {
            Some(bytes) => contents(&bytes, flags),
            None => pass,
        },
        _ => pass,
    }
}

/// A descriptor that reads as the given bytes.
fn contents(bytes: &[u8], flags: u64) -> Outcome {
    let close_on_exec = if flags as i32 & libc::O_CLOEXEC != 0 { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: the kernel reads a terminated name; the rest are descriptor calls.
    let descriptor = unsafe { syscall!(libc::SYS_memfd_create, c"proc".as_ptr(), close_on_exec) };
    if descriptor >= 0 {
        sys::write_all(descriptor as i32, bytes);
        // SAFETY: as above.
        unsafe { syscall!(libc::SYS_lseek, descriptor, 0, libc::SEEK_SET) };
    }
    Outcome::Answer(descriptor)
}

/// The kernel's own list, without what is the engine's.
fn maps(engine: &Engine) -> Vec<u8> {
    let real = procfs::read("maps");
    let heap = engine.process.memory.heap.start;
    let mut out = Vec::with_capacity(real.len());
    for line in real.split_inclusive(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let Some((range, _)) = text.split_once(' ') else { continue };
        let Some((start, end)) = range.split_once('-') else { continue };
        let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16))
        else {
            continue;
        };
        if layout::belongs_to_engine(&(start..end)) {
            continue;
        }
        if (start..end).contains(&heap) {
            // The kernel may have joined it to the executable's zeroed data below.
            let (_, rest) = text.trim_end().split_once(' ').unwrap_or_default();
            if start < heap {
                out.extend_from_slice(format!("{start:08x}-{heap:08x} {rest}\n").as_bytes());
            }
            let line = format!("{heap:08x}-{end:08x} {rest}");
            out.extend_from_slice(format!("{line:<73}[heap]\n").as_bytes());
        } else {
            out.extend_from_slice(line);
        }
    }
    out
}

/// What the kernel shows of the runner's own start, as the guest's.
fn stack_part(engine: &Engine, path: &[u8]) -> Option<Vec<u8>> {
    let texts = |all: &[Vec<u8>]| all.iter().flat_map(|text| [text, &b"\0"[..]].concat()).collect();
    if path.ends_with(b"cmdline") {
        Some(texts(&engine.process.arguments.arguments))
    } else if path.ends_with(b"environ") {
        Some(texts(&engine.process.arguments.environment))
    } else {
        let words =
            engine.process.arguments.auxiliary.iter().flat_map(|(kind, value)| [*kind, *value]);
        Some(words.flat_map(u64::to_le_bytes).collect())
    }
}

/// `readlink` and `readlinkat`.
pub fn readlink(engine: &mut Engine, path: u64, buffer: u64, size: u64, pass: Outcome) -> Outcome {
    let Ok(path) = guest::read_string(path) else { return pass };
    if !is_own_executable(&path) {
        return pass;
    }
    let target = engine.process.executable.as_os_str().as_bytes();
    let length = target.len().min(size as usize);
    if size as i64 <= 0 {
        return Outcome::error(libc::EINVAL);
    }
    if Checked.write(buffer, &target[..length]) {
        Outcome::Answer(length as i64)
    } else {
        Outcome::error(libc::EFAULT)
    }
}
