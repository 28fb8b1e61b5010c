//! Contents of mapped files. Each is sent once for the whole recording, by whichever process maps
//! it first.

use super::Recorder;
use crate::layout;
use crate::log_ring::{FILE, FILE_HEAD, FILES, SHARED_BYTES, Shared};
use crate::runner::{procfs, report};
use crate::sys::{self, syscall};
use recording::log::{Entry, FileKey, FileView};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the processes of this recording share.
pub fn shared() -> &'static Shared {
    // SAFETY: mapped by `map_shared` before anyone asks; all of it atomics.
    unsafe { &*(layout::RECORDING_TABLE.start as *const Shared) }
}

/// Maps what they share.
pub fn map_shared(descriptor: i32) {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let base = layout::RECORDING_TABLE.start;
    // SAFETY: a range of the engine's own.
    let mapped =
        unsafe { sys::map_fixed(base, SHARED_BYTES, protection, libc::MAP_SHARED, descriptor, 0) };
    if let Err(error) = mapped {
        report::refuse(&format!("no shared table: error {error}"), 0);
    }
}

/// Notes whether a process is recorded, by the host's number for it.
pub fn note_process(process: i32, recorded: bool) {
    if let Some((word, bit)) = place_of(process) {
        match recorded {
            true => word.fetch_or(bit, Ordering::AcqRel),
            false => word.fetch_and(!bit, Ordering::AcqRel),
        };
    }
}

/// Whether a process is recorded.
pub fn is_recorded(process: i32) -> bool {
    place_of(process).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

fn place_of(process: i32) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(process).ok()?;
    Some((shared().processes.get(number / 64)?, 1 << (number % 64)))
}

/// Whether nobody has sent a file yet; from now on somebody has.
fn claim(key: FileKey) -> bool {
    let table = &shared().files;
    let first = key.0 as usize % FILES;
    for index in (first..FILES).chain(0..first) {
        match table[index].compare_exchange(0, key.0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return true,
            Err(there) if there == key.0 => return false,
            Err(_) => {}
        }
    }
    true
}

/// Files above this are sent only as far as they are mapped.
const WHOLE: u64 = 256 << 20;

struct Status {
    device: u64,
    inode: u64,
    mode: u32,
    size: u64,
    changed: [u64; 4],
}

fn status(descriptor: i32) -> Option<Status> {
    let mut words = [0u64; 18];
    // SAFETY: the kernel writes one `struct stat`, 144 bytes.
    let answer = unsafe { syscall!(libc::SYS_fstat, descriptor, words.as_mut_ptr()) };
    (answer == 0).then_some(Status {
        device: words[0],
        inode: words[1],
        mode: words[3] as u32,
        size: words[6],
        changed: [words[11], words[12], words[13], words[14]],
    })
}

impl Status {
    fn is_regular(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    fn key(&self, part: (u64, u64), changes: bool) -> FileKey {
        let [a, b, c, d] = self.changed;
        // The clock of a file system is coarse: what has changed just now may change again
        // without a trace, and so may what is written through a mapping. Its contents are nobody
        // else's.
        let alone = changes || self.is_fresh();
        let fresh = if alone { shared().outputs.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        let words = [self.device, self.inode, self.size, a, b, c, d, part.0, part.1, fresh];
        FileKey(mix(&words))
    }

    fn identity(&self) -> u64 {
        identity((self.device, self.inode))
    }

    /// Whether it was changed less than a tenth of a second ago.
    fn is_fresh(&self) -> bool {
        let mut now = [0u64; 2];
        // SAFETY: the kernel writes one `timespec`.
        unsafe { syscall!(libc::SYS_clock_gettime, libc::CLOCK_REALTIME, now.as_mut_ptr()) };
        let nanoseconds =
            |seconds: u64, rest: u64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let age = nanoseconds(now[0], now[1]) - nanoseconds(self.changed[2], self.changed[3]);
        age < 100_000_000
    }
}

/// What a log calls a file.
pub fn identity((device, inode): (u64, u64)) -> u64 {
    mix(&[device, inode])
}

/// A number that is not zero.
pub fn mix(words: &[u64]) -> u64 {
    let hash = words.iter().fold(0x5eed_u64, |hash, word| {
        (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
    });
    hash.max(1)
}

/// A file has been mapped by a call that is already in the log.
pub fn mapped(recorder: &mut Recorder, arguments: [u64; 6]) {
    let [_, length, _, flags, descriptor, offset] = arguments;
    if flags as i32 & libc::MAP_ANONYMOUS != 0 {
        return;
    }
    let changes = flags as i32 & libc::MAP_SHARED != 0;
    if let Some(view) = view(recorder, descriptor as i32, offset, length, changes) {
        let link = procfs::link(descriptor);
        let path = link.map_or_else(String::new, |path| path.to_string_lossy().into_owned());
        recorder.put(&Entry::Mapped { path, view }, 0);
    }
}

/// A part of an open file, its contents sent if nobody has done so. `None` if it reads as zeros.
fn view(
    recorder: &mut Recorder,
    descriptor: i32,
    offset: u64,
    length: u64,
    changes: bool,
) -> Option<FileView> {
    let status = status(descriptor)?;
    if !status.is_regular() {
        if is_zero_device(&status) {
            return None;
        }
        recorder.refuse("the guest mapped a device: what it shows cannot be recorded");
    }
    let part = if status.size <= WHOLE { (0, status.size) } else { (offset, length) };
    let key = status.key(part, changes);
    if claim(key) {
        send(recorder, key, descriptor, status.size, part);
    }
    Some(FileView { key, identity: status.identity(), size: status.size, offset })
}

/// A part of a file, by path.
pub fn view_of(recorder: &mut Recorder, path: &str, offset: u64, length: u64) -> Option<FileView> {
    let file = std::fs::File::open(path).ok()?;
    view(recorder, file.as_raw_fd(), offset, length, false)
}

fn is_zero_device(status: &Status) -> bool {
    let mut zero = [0u64; 18];
    let path = c"/dev/zero".as_ptr();
    // SAFETY: the kernel reads a terminated path and writes one `struct stat`.
    let answer = unsafe { syscall!(libc::SYS_stat, path, zero.as_mut_ptr()) };
    answer == 0 && (zero[0], zero[1]) == (status.device, status.inode)
}

fn send(recorder: &mut Recorder, key: FileKey, file: i32, size: u64, part: (u64, u64)) {
    let (offset, wanted) = part;
    let length = wanted.min(size.saturating_sub(offset));
    let mut head = Vec::with_capacity(FILE_HEAD);
    head.extend(FILE.to_le_bytes());
    head.extend(0u32.to_le_bytes());
    for word in [key.0, size, offset, length] {
        head.extend(word.to_le_bytes());
    }
    recorder.log.append(&head);
    let mut buffer = vec![0; 256 << 10];
    let mut done = 0;
    while done < length {
        let step = (length - done).min(buffer.len() as u64);
        let at = offset + done;
        // SAFETY: the kernel writes at most the buffer's length.
        let got = unsafe { syscall!(libc::SYS_pread64, file, buffer.as_mut_ptr(), step, at) };
        // A file that shrinks under us: what is gone reads as zeros, as its mapping would fault.
        let got = if got <= 0 {
            buffer.fill(0);
            step as usize
        } else {
            got as usize
        };
        recorder.log.append(&buffer[..got]);
        done += got as u64;
    }
}
