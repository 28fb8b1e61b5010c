//! Which shared memory the processes of this recording have made themselves. Of any other somebody
//! else may have a part, who can write to it at any time: it is not mapped or attached.

use super::files::{mix, shared};
use crate::log_ring::MADE;
use crate::sys::{self, syscall};
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory that processes can share by a name or number.
#[derive(Clone, Copy)]
pub enum Name {
    /// Device and inode.
    File(u64, u64),
    /// A segment of System V's.
    Segment(u64),
}

/// In the place of memory that was given away.
const GIVEN_AWAY: u64 = u64::MAX;

/// Before a call that may make a file: the time.
pub fn asked(number: u64, a: [u64; 6]) -> Option<u64> {
    let creates = |flags: u64| flags & libc::O_CREAT as u64 != 0;
    let asks = match number as i64 {
        libc::SYS_open => creates(a[1]),
        libc::SYS_openat => creates(a[2]),
        libc::SYS_creat => true,
        _ => false,
    };
    asks.then(coarse_now)
}

/// Whether a call opens a file.
pub fn opens(number: u64) -> bool {
    matches!(number as i64, libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat)
}

/// The file behind a descriptor if it is in memory.
pub fn name(descriptor: u64) -> Option<Name> {
    birth(descriptor).map(|(name, _)| name)
}

/// It has returned: what it has made is ours.
pub fn called(asked: Option<u64>, number: u64, answer: i64) {
    if answer < 0 {
        return;
    }
    match number as i64 {
        libc::SYS_memfd_create => {
            if let Some((file, _)) = birth(answer as u64) {
                note(file);
            }
        }
        libc::SYS_open | libc::SYS_openat | libc::SYS_creat => {
            let Some(asked) = asked else { return };
            if let Some((file, _)) = birth(answer as u64).filter(|(_, born)| *born >= asked) {
                note(file);
            }
        }
        libc::SYS_shmget if creator(answer as u64) == Some(sys::getpid()) => {
            note(Name::Segment(answer as u64));
        }
        _ => {}
    }
}

/// Whether memory that is about to be shared is not ours alone.
pub fn is_foreign(name: Name) -> bool {
    find(name.key()).is_none()
}

/// A file in memory is about to be mapped, so that others can write what this process sees.
pub fn maps(name: Name) {
    note_key(name.mapped());
}

/// Whether a process of this recording has mapped it.
pub fn is_mapped(name: Name) -> bool {
    find(name.mapped()).is_some()
}

/// A file is about to be mapped so that it can be written there.
pub fn writes(file: (u64, u64)) {
    note_key(written_key(file));
}

/// Whether a process of this recording can write to a file through a mapping.
pub fn is_written(file: (u64, u64)) -> bool {
    let full = shared().made[MADE - 2].load(Ordering::Acquire) != 0;
    full || find(written_key(file)).is_some()
}

fn written_key((device, inode): (u64, u64)) -> u64 {
    mix(&[4, device, inode])
}

/// Memory of ours that others get to write: from now on it is theirs.
pub fn give_away(name: Name) {
    if let Some(place) = find(name.key()) {
        place.store(GIVEN_AWAY, Ordering::Release);
    }
}

fn find(key: u64) -> Option<&'static AtomicU64> {
    let table = &shared().made;
    let there = table.iter().map(|place| (place, place.load(Ordering::Acquire)));
    there
        .take_while(|(_, there)| *there != 0)
        .find(|(_, there)| *there == key)
        .map(|(place, _)| place)
}

/// The file behind a descriptor is memory of somebody else's.
pub fn is_foreign_file(descriptor: u64) -> bool {
    birth(descriptor).is_some_and(|(file, _)| is_foreign(file))
}

impl Name {
    /// A number that stands for it.
    pub fn key(self) -> u64 {
        match self {
            Self::File(device, inode) => mix(&[1, device, inode]),
            Self::Segment(number) => mix(&[2, number]),
        }
    }

    /// One that stands for its being mapped.
    fn mapped(self) -> u64 {
        mix(&[3, self.key()])
    }
}

/// Notes that memory is ours. Where the table is full it is nobody's, and refused.
fn note(name: Name) {
    note_key(name.key());
}

fn note_key(key: u64) {
    for place in &shared().made[..MADE - 1] {
        match place.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(there) if there == key => return,
            Err(_) => {}
        }
    }
}

/// The file behind a descriptor if it is in memory, and when it was made.
fn birth(descriptor: u64) -> Option<(Name, u64)> {
    let mut kind = [0u64; 15];
    // SAFETY: the kernel writes one `struct statfs`, 120 bytes.
    let answer = unsafe { syscall!(libc::SYS_fstatfs, descriptor, kind.as_mut_ptr()) };
    if answer < 0 || kind[0] != libc::TMPFS_MAGIC as u64 {
        return None;
    }
    let mut status = [0u64; 32];
    let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
    // SAFETY: the kernel reads a terminated path and writes one `struct statx`, 256 bytes.
    let answer = unsafe {
        let (path, flags) = (c"".as_ptr(), libc::AT_EMPTY_PATH);
        syscall!(libc::SYS_statx, descriptor, path, flags, mask, status.as_mut_ptr())
    };
    let born = status[0] as u32 & libc::STATX_BTIME != 0;
    // Seconds, then nanoseconds in half a word: of birth, or of the last change.
    let at = if born { 10 } else { 12 };
    let time = nanoseconds(status[at], status[at + 1] & 0xffff_ffff);
    (answer == 0).then_some((Name::File(status[17], status[4]), time))
}

/// Who has made a segment.
fn creator(segment: u64) -> Option<i32> {
    const IPC_STAT: i32 = 2;
    let mut status = [0u64; 14];
    // SAFETY: the kernel writes one `shmid_ds`, 112 bytes.
    let answer = unsafe { syscall!(libc::SYS_shmctl, segment, IPC_STAT, status.as_mut_ptr()) };
    (answer == 0).then_some(status[10] as i32)
}

/// The clock that files are stamped by is coarse.
pub fn coarse_now() -> u64 {
    let mut now = [0u64; 2];
    let clock = libc::CLOCK_REALTIME_COARSE;
    // SAFETY: the kernel writes one `timespec`.
    unsafe { syscall!(libc::SYS_clock_gettime, clock, now.as_mut_ptr()) };
    nanoseconds(now[0], now[1])
}

fn nanoseconds(seconds: u64, rest: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
